"""BASE: every weight of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from caref.methods.method import Method

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Base(Method):
    """Full fine-tuning. There is no adapter: the whole model is saved."""

    summary: ClassVar[str] = "every weight"

    def peft_config(self, model: PreTrainedModel) -> None:
        """None: the model itself is trained."""
