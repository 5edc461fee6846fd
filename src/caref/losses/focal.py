"""Focal loss: cross-entropy that counts less where the label is already likely."""

from dataclasses import dataclass

import torch
from torch import Tensor

from caref.losses.cross_entropy import cross_entropy_per_position
from caref.losses.objective import Objective, Term
from caref.losses.reduction import check_at_least
from caref.losses.sced import power_of_rest


@dataclass(eq=False, kw_only=True)
class FocalObjective(Objective):
    """Focal loss instead of cross-entropy: ``(1 - p)^gamma * CE``, with p the label's probability.

    In nats. At gamma 0 it is cross-entropy. The factor is part of the gradient, not a constant weight.
    It replaces cross-entropy and has no penalty, so `span` changes nothing.

    Args:
        gamma: Exponent of 1 - p, at least 0.
        span: Where penalties apply: "all" target positions, the "answer" or the "explanation".
        separator_ids: Token ids that end the answer, needed for a span other than "all".
        shift: Compare logits at one position with the label at the next, for causal models.
        ignore_index: The label of padding and prompt positions.
        reduction: "mean" over kept positions, "sum" or "none".
        fused: "auto", "off" for the formula as it stands, or the kernel to use; see `Objective`.

    Source:
        Lin et al., 2017, arXiv:1708.02002, with gamma 2.
    """

    gamma: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("gamma", self.gamma, 0)

    def terms(self, logits: Tensor, labels: Tensor) -> list[Term]:
        """The focal loss."""
        ce = cross_entropy_per_position(logits.log_softmax(-1), labels)
        if self.gamma == 0:
            return [Term("focal", ce, everywhere=True)]
        # expm1: 1 - p without cancellation near p = 1.
        return [Term("focal", power_of_rest(-torch.expm1(-ce), self.gamma) * ce, everywhere=True)]
