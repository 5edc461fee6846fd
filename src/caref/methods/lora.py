"""LoRA on all linear layers but the output layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from caref.errors import CarefError
from caref.methods.method import Method, require_match, task_type
from caref.models.architectures import architecture_of

if TYPE_CHECKING:
    from peft import LoraConfig
    from transformers import PreTrainedModel


class Lora(Method):
    """Low-rank updates of all linear layers but the output layer.

    Args:
        rank: The rank of each update, at least 1; the paper's rows have 4 and 128.
        lora_alpha: The update's scale is ``lora_alpha / rank``, above 0; None means twice the rank.
        lora_dropout: Dropout before the update, within [0, 1).
        target_modules: A regular expression over whole module names, instead of the table's choice.

    Source:
        Hu et al., 2022, arXiv:2106.09685.
    """

    summary: ClassVar[str] = "low-rank updates of all linear layers but the output layer"

    def __init__(
        self,
        *,
        rank: int = 4,
        lora_alpha: float | None = None,
        lora_dropout: float = 0.0,
        target_modules: str | None = None,
    ) -> None:
        check_lora(rank, lora_alpha, lora_dropout)
        self.rank = rank
        self.lora_alpha = 2 * rank if lora_alpha is None else lora_alpha
        self.lora_dropout = lora_dropout
        self.target_modules = target_modules

    def peft_config(self, model: PreTrainedModel) -> LoraConfig:
        """PEFT's LoRA on the linear layers that the architecture's row names.

        Raises:
            CarefError: If no module matches, or one that is no linear layer.
        """
        from peft import LoraConfig

        return LoraConfig(
            task_type=task_type(model),
            r=self.rank,
            lora_alpha=self.lora_alpha,
            lora_dropout=self.lora_dropout,
            target_modules=linear_layers(model, self.target_modules),
        )


class _OfFixedRank(Lora):
    """LoRA under a name that says its rank."""

    RANK: ClassVar[int]

    def __init__(
        self,
        *,
        lora_alpha: float | None = None,
        lora_dropout: float = 0.0,
        target_modules: str | None = None,
    ) -> None:
        super().__init__(
            rank=self.RANK, lora_alpha=lora_alpha, lora_dropout=lora_dropout, target_modules=target_modules
        )


class LoraR4(_OfFixedRank):
    """LoRA of rank 4: the paper's smaller row.

    Args:
        lora_alpha: The update's scale is ``lora_alpha / rank``, above 0; None means twice the rank.
        lora_dropout: Dropout before the update, within [0, 1).
        target_modules: A regular expression over whole module names, instead of the table's choice.
    """

    summary: ClassVar[str] = f"{Lora.summary}, rank 4"
    RANK: ClassVar[int] = 4


class LoraR128(_OfFixedRank):
    """LoRA of rank 128: the paper's larger row.

    Args:
        lora_alpha: The update's scale is ``lora_alpha / rank``, above 0; None means twice the rank.
        lora_dropout: Dropout before the update, within [0, 1).
        target_modules: A regular expression over whole module names, instead of the table's choice.
    """

    summary: ClassVar[str] = f"{Lora.summary}, rank 128"
    RANK: ClassVar[int] = 128


def check_lora(rank: int, lora_alpha: float | None, lora_dropout: float, *, name: str = "rank") -> None:
    """Check the settings of low-rank updates.

    Raises:
        CarefError: If one is out of range.
    """
    if rank < 1:
        raise CarefError(f"{name} must be at least 1, got {rank}")
    if lora_alpha is not None and not lora_alpha > 0:
        raise CarefError(f"lora_alpha must be above 0, got {lora_alpha}")
    if not 0 <= lora_dropout < 1:
        raise CarefError(f"lora_dropout must be within [0, 1), got {lora_dropout}")


def linear_layers(model: PreTrainedModel, target_modules: str | None) -> str:
    """The pattern of the layers to adapt: the user's own, or all linear layers but the output layer.

    Raises:
        CarefError: If no module matches, or one that is no linear layer.
    """
    import torch
    from transformers.pytorch_utils import Conv1D

    pattern = architecture_of(model.config).lora_linear if target_modules is None else target_modules
    for module in require_match(pattern, model):
        if not isinstance(module, (torch.nn.Linear, torch.nn.Embedding, Conv1D)):
            raise CarefError(f"{pattern!r} matches a {type(module).__name__}, which LoRA cannot adapt")
    return pattern
