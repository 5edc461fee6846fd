"""The CAREF objective: cross-entropy, SCED and KL from uniform."""

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from caref.losses.cross_entropy import cross_entropy_per_position
from caref.losses.kl_uniform import kl_uniform_per_position
from caref.losses.objective import Objective, Term, check_warmup, limit_penalties, weighted_sum
from caref.losses.penalties import Normalize, Penalties
from caref.losses.reduction import (
    Reduction,
    check_at_least,
    check_mask,
    kept_positions,
    reduce_positions,
)
from caref.losses.sced import check_sced, sced_per_position


def caref_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    alpha: float = 2.0,
    beta: float = 1.0,
    lambda_sced: float = 0.1,
    lambda_kl: float = 0.1,
    normalize: Normalize | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    mask: Tensor | None = None,
    penalty_mask: Tensor | None = None,
    num_items_in_batch: int | Tensor | None = None,
) -> Tensor:
    """``CE + lambda_sced * SCED + lambda_kl * KL`` at each kept position.

    With ``P = softmax(logits)`` and ``q_v = P_v (log P_v + log V)``:
    ``SCED = sum_v |q_v|^alpha (1 - P_v)^beta`` and ``KL = sum_v q_v = log V - H(P)``.

    Args:
        logits: Finite scores, shape ``(..., vocab)``, any float dtype; half precision is
            computed in float32.
        labels: Target ids, shape ``(...)``, int64.
        alpha: Exponent of a token's share of the divergence, at least 1.
        beta: Exponent of ``1 - P``, at least 0.
        lambda_sced: Weight of SCED, at least 0.
        lambda_kl: Weight of KL, at least 0.
        normalize: ``"log_vocab"`` divides q by ``log V`` in SCED; not in the paper.
        ignore_index: The label of padding and prompt positions.
        reduction: ``"mean"`` over kept positions, ``"sum"`` or ``"none"``.
        mask: Further limits the positions that count, shape ``(...)``, bool.
        penalty_mask: Limits SCED and KL, but not CE, shape ``(...)``, bool. ``"mean"`` divides
            them by the number of all kept positions nevertheless: a position weighs the same
            whatever the mask.
        num_items_in_batch: What ``"mean"`` divides the sum by, instead of the number of kept
            positions: their number in the whole effective batch.

    Returns:
        A scalar, or shape ``(...)`` with 0 at ignored positions for ``"none"``. With no kept
        position the result is 0 and so is its gradient.

    Raises:
        TypeError: If a dtype is wrong.
        ValueError: If the shapes disagree, a label lies outside the vocabulary, or a setting
            is out of range.

    Example:
        >>> logits = torch.zeros(1, 2, 4)  # uniform: both penalties are 0
        >>> caref_loss(logits, torch.tensor([[3, -100]]))  # log(4)
        tensor(1.3863)

    Source:
        CAREF, equation of the unified objective. The paper sums over positions; its public
        code averages, and these are the defaults of that code.
    """
    check_settings(alpha, beta, lambda_sced, lambda_kl, normalize)
    if penalty_mask is not None:
        check_mask("penalty_mask", penalty_mask, logits)
    logits, labels, keep = kept_positions(logits, labels, ignore_index, mask)
    terms = _terms(logits, labels, alpha, beta, lambda_sced, lambda_kl, normalize)
    values = weighted_sum(limit_penalties(terms, penalty_mask))
    return reduce_positions(values, keep, reduction, num_items_in_batch)


@dataclass(eq=False)
class CarefLoss(Objective):
    """The CAREF objective with its settings: ``CE + lambda_sced * SCED + lambda_kl * KL``.

    Pass it to `transformers.Trainer` as `compute_loss_func`, or call it on logits and labels.

    Args:
        alpha: Exponent of a token's share of the divergence, at least 1.
        beta: Exponent of 1 - P, at least 0.
        lambda_sced: Weight of SCED, at least 0.
        lambda_kl: Weight of the KL divergence from uniform, at least 0.
        normalize: "log_vocab" divides a token's share by log V in SCED; not in the paper.
        sced_warmup: Fraction of training, below 1, during which lambda_sced rises from 0.
        span: Where penalties apply: "all" target positions, the "answer" or the "explanation".
        separator_ids: Token ids that end the answer, needed for a span other than "all".
        shift: Compare logits at one position with the label at the next, for causal models.
        ignore_index: The label of padding and prompt positions.
        reduction: "mean" over kept positions, "sum" or "none".
        fused: "auto", "off" for the formula as it stands, or the kernel to use; see `Objective`.

    Example:
        >>> loss = CarefLoss(lambda_sced=0.01)
        >>> loss(torch.zeros(1, 2, 4), torch.tensor([[3, -100]]))
        tensor(1.3863)
        >>> loss.pop_components()
        {'ce': 1.386..., 'sced': 0.0, 'kl': 0.0}
    """

    alpha: float = 2.0
    beta: float = 1.0
    lambda_sced: float = 0.1
    lambda_kl: float = 0.1
    _: KW_ONLY
    normalize: Normalize | None = None
    sced_warmup: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self.alpha, self.beta, self.lambda_sced, self.lambda_kl, self.normalize)
        check_warmup("sced_warmup", self.sced_warmup)

    def terms(self, logits: Tensor, labels: Tensor) -> list[Term]:
        """Cross-entropy, SCED and KL."""
        lambda_sced = self.warmed_up(self.lambda_sced, self.sced_warmup)
        return _terms(logits, labels, self.alpha, self.beta, lambda_sced, self.lambda_kl, self.normalize)

    def penalties(self) -> Penalties:
        """SCED and KL."""
        lambda_sced = self.warmed_up(self.lambda_sced, self.sced_warmup)
        return Penalties(lambda_sced, self.lambda_kl, self.alpha, self.beta, self.normalize)


def _terms(
    logits: Tensor,
    labels: Tensor,
    alpha: float,
    beta: float,
    lambda_sced: float,
    lambda_kl: float,
    normalize: Normalize | None,
) -> list[Term]:
    log_probs = torch.log_softmax(logits, dim=-1)
    return [
        Term("ce", cross_entropy_per_position(log_probs, labels), everywhere=True),
        Term("sced", sced_per_position(log_probs, alpha, beta, normalize), lambda_sced),
        Term("kl", kl_uniform_per_position(log_probs), lambda_kl),
    ]


def check_settings(
    alpha: float, beta: float, lambda_sced: float, lambda_kl: float, normalize: Normalize | None
) -> None:
    """Raise unless the settings are in range."""
    check_sced(alpha, beta, normalize)
    check_at_least("lambda_sced", lambda_sced, 0)
    check_at_least("lambda_kl", lambda_kl, 0)
