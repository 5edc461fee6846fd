"""Prefix tuning: learned keys and values before the decoder's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from caref.methods.method import Method, check_virtual_tokens, task_type
from caref.models.architectures import attention_shape

if TYPE_CHECKING:
    from peft import PrefixTuningConfig
    from transformers import PreTrainedModel


class Prefix(Method):
    """Keys and values of virtual tokens, in the self-attention of every layer of the decoder.

    The weights of the model stay as they are, so there is nothing to merge. The keys and values are
    trained as they are, without the network that the source reparametrizes them by.

    Args:
        virtual_tokens: How many, at least 1.

    Source:
        Li and Liang, 2021, arXiv:2101.00190.
    """

    summary: ClassVar[str] = "keys and values of virtual tokens in the decoder's self-attention"

    def __init__(self, *, virtual_tokens: int = 20) -> None:
        check_virtual_tokens(virtual_tokens)
        self.virtual_tokens = virtual_tokens

    def peft_config(self, model: PreTrainedModel) -> PrefixTuningConfig:
        """PEFT's prefix tuning in the shape of the decoder's cache."""
        from peft import PrefixTuningConfig

        layers, heads, head_size = attention_shape(model.config)
        pair = model.config.is_encoder_decoder
        if pair and layers % 2 == 0:
            # PEFT 0.21 deals keys and values out to the layers of an encoder-decoder so that, where their
            # number is even, half of the layers get those of the other half. One layer more, which nothing
            # reads, gives each its own.
            layers += 1
        return PrefixTuningConfig(
            task_type=task_type(model),
            num_virtual_tokens=self.virtual_tokens,
            # Two keep the decoder's own cache apart from that of cross-attention.
            num_transformer_submodules=2 if pair else 1,
            num_layers=layers,
            num_attention_heads=heads,
            token_dim=heads * head_size,
        )
