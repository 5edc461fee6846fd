"""Anchored supervised fine-tuning: weighted cross-entropy, held near the base model."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from caref.losses.cross_entropy import cross_entropy_per_position
from caref.losses.objective import Objective, Term
from caref.losses.reduction import check_at_least


@dataclass(eq=False, kw_only=True)
class AsftObjective(Objective):
    """Anchored supervised fine-tuning: ``p * CE + lambda_anchor * KL(base || model)``.

    p is the label's probability, held constant in the gradient. The divergence is that of the model's
    distribution from the one that the frozen base gives at the same position:
    ``KL = sum_v B (log B - log P)``, at least 0. Both in nats. The weighted cross-entropy replaces CE and
    stays on every position; the anchor is a penalty and obeys `span`.

    It needs the base's logits, as ``reference_logits``. In ``caref run`` they come from a second forward
    pass, without the adapter or through a frozen copy.

    Args:
        lambda_anchor: Weight of the divergence from the base, at least 0.
        span: Where penalties apply: "all" target positions, the "answer" or the "explanation".
        separator_ids: Token ids that end the answer, needed for a span other than "all".
        shift: Compare logits at one position with the label at the next, for causal models.
        ignore_index: The label of padding and prompt positions.
        reduction: "mean" over kept positions, "sum" or "none".
        fused: "auto", "off" for the formula as it stands, or the kernel to use; see `Objective`.

    Source:
        Zhu et al., 2025, arXiv:2509.23753; the direction of the divergence and the weight 0.1 are those of
        its public code.
    """

    needs_reference: ClassVar[bool] = True
    has_detached_weight: ClassVar[bool] = True
    lambda_anchor: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("lambda_anchor", self.lambda_anchor, 0)

    def terms(self, logits: Tensor, labels: Tensor, reference_logits: Tensor | None = None) -> list[Term]:
        """The weighted cross-entropy and the divergence from the base."""
        assert reference_logits is not None, "an Objective asks for it when it is called"
        log_probs = logits.log_softmax(-1)
        ce = cross_entropy_per_position(log_probs, labels)
        anchor = kl_from_reference_per_position(log_probs, reference_logits.log_softmax(-1))
        return [
            Term("dft", (-ce.detach()).exp() * ce, everywhere=True),
            Term("anchor", anchor, self.lambda_anchor),
        ]


def kl_from_reference_per_position(log_probs: Tensor, reference_log_probs: Tensor) -> Tensor:
    """``sum_v B (log B - log P)``, shape ``(...)``, from two log-probabilities ``(..., vocab)``."""
    # A token that both exclude would give inf - inf; with finite stand-ins it contributes 0.
    low = torch.finfo(log_probs.dtype).min / 2
    log_probs, reference_log_probs = log_probs.clamp(min=low), reference_log_probs.clamp(min=low)
    return (reference_log_probs.exp() * (reference_log_probs - log_probs)).sum(-1)
