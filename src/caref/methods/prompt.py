"""Prompt tuning: learned embeddings before the input's."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from caref.methods.method import Method, check_virtual_tokens, task_type
from caref.models.architectures import attention_shape

if TYPE_CHECKING:
    from peft import PromptTuningConfig
    from transformers import PreTrainedModel


class Prompt(Method):
    """Embeddings of virtual tokens before the input, which start as those of words drawn at random.

    The weights of the model stay as they are, so there is nothing to merge.

    Args:
        virtual_tokens: How many, at least 1.

    Source:
        Lester et al., 2021, arXiv:2104.08691.
    """

    summary: ClassVar[str] = "embeddings of virtual tokens before the input"

    def __init__(self, *, virtual_tokens: int = 20) -> None:
        check_virtual_tokens(virtual_tokens)
        self.virtual_tokens = virtual_tokens

    def peft_config(self, model: PreTrainedModel) -> PromptTuningConfig:
        """PEFT's prompt tuning, in front of the encoder or of the only stack there is."""
        from peft import PromptTuningConfig, PromptTuningInit

        layers, heads, _ = attention_shape(model.config)
        return PromptTuningConfig(
            task_type=task_type(model),
            num_virtual_tokens=self.virtual_tokens,
            num_transformer_submodules=1,
            token_dim=model.get_input_embeddings().weight.shape[1],
            # Of no use to prompt tuning; PEFT wants them and does not find them in a pair of models.
            num_layers=layers,
            num_attention_heads=heads,
            prompt_tuning_init=PromptTuningInit.SAMPLE_VOCAB,
        )
