"""(IA)^3: learned scales of keys, values and feed-forward activations."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from caref.methods.method import Method, require_match, task_type
from caref.models.architectures import architecture_of

if TYPE_CHECKING:
    from peft import IA3Config
    from transformers import PreTrainedModel


class Ia3(Method):
    """Scales, one for each feature, of keys, values and the input of each feed-forward layer's end.

    Args:
        target_modules: A regular expression over whole module names, instead of the table's choice; the
            outputs of these modules are scaled.

    Source:
        Liu et al., 2022, arXiv:2205.05638.
    """

    summary: ClassVar[str] = "scales of keys, values and feed-forward activations"

    def __init__(self, *, target_modules: str | None = None) -> None:
        self.target_modules = target_modules

    def peft_config(self, model: PreTrainedModel) -> IA3Config:
        """PEFT's (IA)^3 on the modules that the architecture's row names.

        Raises:
            CarefError: If no module matches.
        """
        from peft import IA3Config

        if self.target_modules is None:
            row = architecture_of(model.config)
            scaled, feedforward = row.ia3, row.ia3_feedforward
        else:
            scaled, feedforward = self.target_modules, NOTHING
        require_match(scaled, model)
        return IA3Config(task_type=task_type(model), target_modules=scaled, feedforward_modules=feedforward)


NOTHING = r"(?!)"
"""A pattern that no name matches."""
