"""LAQ: all layer norms and q of self-attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from caref.methods.method import ModuleTuning
from caref.models.architectures import architecture_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Laq(ModuleTuning):
    """Layer norms and attention query: all layer norms, and q of self-attention.

    Args:
        target_modules: A regular expression over whole module names, instead of the table's choice.
    """

    summary: ClassVar[str] = "all layer norms and q of self-attention"
    query_only: ClassVar[bool] = True

    def modules(self, model: PreTrainedModel) -> str:
        """The modules that the architecture's row names."""
        row = architecture_of(model.config)
        return f"({row.layer_norms})|({row.query})"
