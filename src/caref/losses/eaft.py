"""Entropy-adaptive fine-tuning: cross-entropy counts less where the model is sure of itself."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from caref.losses.cross_entropy import cross_entropy_per_position
from caref.losses.entropy import entropy_per_position
from caref.losses.objective import Objective, Term
from caref.losses.reduction import check_at_least

TOP = 20
"""Tokens whose entropy is taken."""


@dataclass(eq=False, kw_only=True)
class EaftObjective(Objective):
    """Cross-entropy weighted by the model's own uncertainty: ``(H_20 / log 20)^eaft_alpha * CE``.

    ``H_20`` is the entropy of the 20 most likely tokens, renormalised (of all tokens, and divided by their
    logarithm, where there are fewer). The weight lies in [0, 1] and is held constant in the gradient. A
    label that contradicts a confident prediction weighs next to nothing. It replaces cross-entropy and
    has no penalty, so `span` changes nothing. In nats.

    Other trainers divide by 3.0, which is about log 20 = 2.996.

    Args:
        eaft_alpha: Exponent of the weight, at least 0; 0 is cross-entropy.
        span: Where penalties apply: "all" target positions, the "answer" or the "explanation".
        separator_ids: Token ids that end the answer, needed for a span other than "all".
        shift: Compare logits at one position with the label at the next, for causal models.
        ignore_index: The label of padding and prompt positions.
        reduction: "mean" over kept positions, "sum" or "none".
        fused: "auto", "off" for the formula as it stands, or the kernel to use; see `Objective`.

    Source:
        Entropy-adaptive fine-tuning, 2026, arXiv:2601.02151.
    """

    has_detached_weight: ClassVar[bool] = True
    eaft_alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("eaft_alpha", self.eaft_alpha, 0)

    def terms(self, logits: Tensor, labels: Tensor) -> list[Term]:
        """The weighted cross-entropy."""
        ce = cross_entropy_per_position(logits.log_softmax(-1), labels)
        weight = top_entropy_share(logits.detach()).pow(self.eaft_alpha)
        return [Term("eaft", weight * ce, everywhere=True)]


def top_entropy_share(logits: Tensor) -> Tensor:
    """Entropy of the most likely tokens as a share of its maximum, within [0, 1], shape ``(...)``."""
    count = min(TOP, logits.shape[-1])
    if count == 1:
        return torch.zeros_like(logits[..., 0])
    entropy = entropy_per_position(logits.topk(count, dim=-1).values.log_softmax(-1))
    return entropy / math.log(count)
