"""DEC: the decoder stack without shared embedding and output layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from caref.methods.method import ModuleTuning
from caref.models.architectures import architecture_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Dec(ModuleTuning):
    """Every weight of the decoder stack, without the shared embedding and the output layer.

    Args:
        target_modules: A regular expression over whole module names, instead of the table's choice.
    """

    summary: ClassVar[str] = "the decoder stack without shared embedding and output layer"

    def modules(self, model: PreTrainedModel) -> str:
        """The modules that the architecture's row names."""
        return architecture_of(model.config).decoder
