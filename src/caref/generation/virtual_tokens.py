"""Virtual tokens: what an adapter of PEFT puts before the tokens of a batch.

Such an adapter acts in the wrapper's own forward pass, which a step-by-step decoding never calls. Here
its part is taken out, so that every call goes to the base model; the order of things and their positions
are those of the wrapper's forward pass, by which the adapter was trained. Adapters that live inside the
modules need none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from caref.errors import CarefError

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import Cache, PreTrainedModel


class VirtualTokens:
    """The virtual tokens of a model's active adapter.

    Attributes:
        before_input: How many embeddings stand before those of the input (prompt tuning), or 0.
        in_cache: How many keys and values stand in the cache before the first token (prefix tuning), or 0.
            On an encoder-decoder it is the cache of the decoder's self-attention.

    Raises:
        CarefError: If the adapter has virtual tokens of another kind, or not in the shape of this model.
    """

    def __init__(self, model: PeftModel) -> None:
        from peft import PeftType

        self._model = model
        config = model.active_peft_config
        self.before_input = self.in_cache = 0
        if config.peft_type in (PeftType.PROMPT_TUNING, PeftType.P_TUNING):
            self.before_input = config.num_virtual_tokens
        elif config.peft_type == PeftType.PREFIX_TUNING:
            self.in_cache = config.num_virtual_tokens
        else:
            raise CarefError(
                f"an adapter of type {config.peft_type.value} cannot be used to answer; "
                "of those with virtual tokens PREFIX_TUNING, PROMPT_TUNING and P_TUNING can"
            )
        if self.in_cache and model.config.is_encoder_decoder and config.num_transformer_submodules != 2:
            raise CarefError(
                "prefix tuning of an encoder-decoder needs num_transformer_submodules=2: "
                "with 1 PEFT puts the keys of the input among those of the decoder"
            )

    def embedded(self, input_ids: Tensor) -> Tensor:
        """The virtual embeddings and then those of the input.

        Args:
            input_ids: Shape ``(batch, tokens)``.

        Returns:
            Shape ``(batch, before_input + tokens, hidden)``.
        """
        embeddings: Tensor = self._model.word_embeddings(input_ids)
        # On an encoder-decoder PEFT keeps embeddings for the decoder too, and does not use them.
        virtual = self._model.get_prompt(len(input_ids))[:, : self.before_input]
        return torch.cat([virtual.to(embeddings.dtype), embeddings], dim=1)

    def cache(self, batch: int) -> Cache:
        """A cache that holds the virtual keys and values, for so many rows; a new one every time."""
        cache: Cache = self._model.get_prompt(batch)
        return cache


def virtual_tokens(model: PreTrainedModel | PeftModel) -> VirtualTokens | None:
    """The virtual tokens of a model; None where it has none.

    Raises:
        CarefError: If they are of a kind that cannot be used to answer.
    """
    from peft import PeftModel

    if not isinstance(model, PeftModel) or not model.active_peft_config.is_prompt_learning:
        return None
    return VirtualTokens(model)


def base_model(model: PreTrainedModel | PeftModel) -> PreTrainedModel:
    """The model itself, with what an adapter has put inside its modules."""
    from peft import PeftModel

    return model.get_base_model() if isinstance(model, PeftModel) else model
