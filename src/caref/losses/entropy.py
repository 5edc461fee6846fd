"""The confidence penalty: cross-entropy minus the entropy of the prediction."""

from dataclasses import dataclass

import torch
from torch import Tensor

from caref.losses.cross_entropy import cross_entropy_per_position
from caref.losses.objective import Objective, Term
from caref.losses.reduction import check_at_least


def entropy_per_position(log_probs: Tensor) -> Tensor:
    """``H = -sum_v P log P`` in nats, shape ``(...)``, from log-probabilities ``(..., vocab)``."""
    # log P = -inf would give 0 * inf; any finite stand-in gives P log P = 0, its limit.
    log_probs = log_probs.clamp(min=torch.finfo(log_probs.dtype).min)
    return -(log_probs.exp() * log_probs).sum(-1)


@dataclass(eq=False, kw_only=True)
class EntropyObjective(Objective):
    """Cross-entropy with a confidence penalty: ``CE - lambda_entropy * H``.

    ``H = -sum_v P log P``, in nats and within [0, log V], is the entropy of the prediction: the more
    confident it is, the higher the loss. As ``H = log V - KL``, it has the gradient of the objective
    ``kl`` at an equal weight, and the value of it less a constant. The penalty obeys `span`.

    Args:
        lambda_entropy: Weight of the entropy, which is subtracted, at least 0.
        span: Where penalties apply: "all" target positions, the "answer" or the "explanation".
        separator_ids: Token ids that end the answer, needed for a span other than "all".
        shift: Compare logits at one position with the label at the next, for causal models.
        ignore_index: The label of padding and prompt positions.
        reduction: "mean" over kept positions, "sum" or "none".
        fused: "auto", "off" for the formula as it stands, or the kernel to use; see `Objective`.

    Source:
        Pereyra et al., 2017, arXiv:1701.06548; their weights are 0.1 to 2.
    """

    lambda_entropy: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("lambda_entropy", self.lambda_entropy, 0)

    def terms(self, logits: Tensor, labels: Tensor) -> list[Term]:
        """Cross-entropy and entropy."""
        log_probs = logits.log_softmax(-1)
        return [
            Term("ce", cross_entropy_per_position(log_probs, labels), everywhere=True),
            Term("entropy", entropy_per_position(log_probs), -self.lambda_entropy),
        ]
