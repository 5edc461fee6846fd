"""AdaLoRA: low-rank updates whose ranks shrink where they matter least."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from caref.errors import CarefError
from caref.methods.lora import check_lora, linear_layers
from caref.methods.method import Method, task_type

if TYPE_CHECKING:
    from peft import AdaLoraConfig, PeftModel
    from torch import Tensor
    from transformers import PreTrainedModel


class AdaLora(Method):
    """Low-rank updates in the form of a singular value decomposition, pruned to a budget of ranks.

    All updates start with `initial_rank`. Over the middle of the training those singular values that
    matter least are set to 0, until `target_rank` are left per update on average. A penalty keeps the
    singular vectors orthogonal; it is part of the gradient, not of the reported loss.

    Args:
        initial_rank: The rank of each update at the start, at least 1.
        target_rank: The mean rank at the end, from 1 to `initial_rank`.
        shrink_from: Fraction of the training after which ranks begin to shrink, within [0, 1).
        shrink_until: Fraction of the training after which ranks stay, above `shrink_from`, at most 1.
        orthogonality: Weight of the penalty on singular vectors, at least 0.
        lora_alpha: The update's scale is ``lora_alpha / rank``, above 0; None means twice the rank.
        lora_dropout: Dropout before the update, within [0, 1).
        target_modules: A regular expression over whole module names, instead of the table's choice.

    Source:
        Zhang et al., 2023, arXiv:2303.10512.
    """

    summary: ClassVar[str] = "low-rank updates of the same layers, whose ranks shrink in training"

    def __init__(
        self,
        *,
        initial_rank: int = 32,
        target_rank: int = 8,
        shrink_from: float = 0.1,
        shrink_until: float = 0.5,
        orthogonality: float = 0.5,
        lora_alpha: float | None = None,
        lora_dropout: float = 0.0,
        target_modules: str | None = None,
    ) -> None:
        check_lora(initial_rank, lora_alpha, lora_dropout, name="initial_rank")
        if not 1 <= target_rank <= initial_rank:
            raise CarefError(
                f"target_rank must be from 1 to the initial rank {initial_rank}, got {target_rank}"
            )
        if not 0 <= shrink_from < shrink_until <= 1:
            raise CarefError(
                "shrink_from must be at least 0 and below shrink_until, which is at most 1, "
                f"got {shrink_from} and {shrink_until}"
            )
        if not orthogonality >= 0:
            raise CarefError(f"orthogonality must be at least 0, got {orthogonality}")
        self.initial_rank = initial_rank
        self.target_rank = target_rank
        self.shrink_from = shrink_from
        self.shrink_until = shrink_until
        self.orthogonality = orthogonality
        self.lora_alpha = 2 * initial_rank if lora_alpha is None else lora_alpha
        self.lora_dropout = lora_dropout
        self.target_modules = target_modules

    def peft_config(self, model: PreTrainedModel) -> AdaLoraConfig:
        """PEFT's AdaLoRA; how long the training is, it learns from the first step.

        Raises:
            CarefError: If no module matches, or one that is no linear layer.
        """
        from peft import AdaLoraConfig

        return AdaLoraConfig(
            task_type=task_type(model),
            init_r=self.initial_rank,
            target_r=self.target_rank,
            lora_alpha=self.lora_alpha,
            lora_dropout=self.lora_dropout,
            orth_reg_weight=self.orthogonality,
            target_modules=linear_layers(model, self.target_modules),
            total_step=1,
        )

    def apply(self, model: PreTrainedModel, *, seed: int = 0) -> PreTrainedModel | PeftModel:
        """Freeze `model` but for the updates, in place.

        Raises:
            CarefError: If no module matches, or one that is no linear layer.
        """
        return freeze_ranks(super().apply(model, seed=seed))

    def before_update(self, model: PreTrainedModel | PeftModel) -> None:
        """Add the gradient of the penalty on singular vectors.

        PEFT adds it to a loss that the model computes itself; here the objective computes the loss.
        """
        if self.orthogonality:
            (self.orthogonality * orthogonality_penalty(model)).backward()

    def after_update(self, model: PreTrainedModel | PeftModel, step: int, total: int) -> None:
        """Note how much each singular value matters, and prune down to this step's budget."""
        config = model.peft_config[model.active_adapter]
        start = round(self.shrink_from * total)
        # What matters is known after one step at the earliest.
        end = max(2, start + 1, round(self.shrink_until * total))
        config.total_step, config.tinit, config.tfinal = total, start, total - end
        model.base_model.update_and_allocate(step)


def freeze_ranks(model: PreTrainedModel | PeftModel) -> PreTrainedModel | PeftModel:
    """Keep the rank of each update a constant, in place: PEFT 0.21 forgets that when it moves one."""
    for name, parameter in model.named_parameters():
        if ".ranknum." in name:
            parameter.requires_grad_(False)
    return model


def orthogonality_penalty(model: PreTrainedModel | PeftModel) -> Tensor:
    """The mean over all singular vector matrices of the Frobenius norm of ``A A^T - I`` or ``B^T B - I``."""
    import torch
    from peft.tuners.adalora import AdaLoraLayer

    norms = []
    for layer in (module for module in model.modules() if isinstance(module, AdaLoraLayer)):
        for adapter in layer.active_adapters:
            for vectors in (layer.lora_A[adapter], layer.lora_B[adapter].T):
                identity = torch.eye(len(vectors), device=vectors.device, dtype=vectors.dtype)
                norms.append(torch.linalg.matrix_norm(vectors @ vectors.T - identity))
    return torch.stack(norms).mean()
