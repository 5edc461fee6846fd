"""AQ: q of self-attention, encoder and decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from caref.methods.method import ModuleTuning
from caref.models.architectures import architecture_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Aq(ModuleTuning):
    """Attention query: q of self-attention in encoder and decoder, cross-attention left out.

    Args:
        target_modules: A regular expression over whole module names, instead of the table's choice.
    """

    summary: ClassVar[str] = "q of self-attention, encoder and decoder"
    query_only: ClassVar[bool] = True

    def modules(self, model: PreTrainedModel) -> str:
        """The modules that the architecture's row names."""
        return architecture_of(model.config).query
