"""Sparsity-Calibrated Entropic Divergence (SCED), the penalty that CAREF adds."""

import math
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from caref.losses.cross_entropy import cross_entropy_per_position
from caref.losses.kl_uniform import kl_contributions
from caref.losses.objective import Objective, Term, check_warmup
from caref.losses.penalties import Normalize, Penalties
from caref.losses.reduction import (
    Reduction,
    check_at_least,
    check_choice,
    kept_positions,
    reduce_positions,
)


def sced_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    alpha: float = 2.0,
    beta: float = 1.0,
    normalize: Normalize | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    mask: Tensor | None = None,
    num_items_in_batch: int | Tensor | None = None,
) -> Tensor:
    """Sparsity-Calibrated Entropic Divergence at each kept position.

    ``SCED = sum_v |q_v|^alpha (1 - P_v)^beta`` with ``q_v = P_v (log P_v + log V)`` and
    ``P = softmax(logits)``. It is 0 at the uniform distribution and, for ``beta > 0``, at a
    one-hot one too. Its size grows like ``(log V)^alpha``.

    The derivative is continuous for ``alpha > 1``. At ``alpha = 1`` it jumps where P = 1 / V
    and the subgradient 0 is taken. For ``0 < beta < 1`` the derivative of ``(1 - P)^beta`` is
    infinite at P = 1; on the logits the limit of the whole is 0, and 0 is what is returned.

    Args:
        logits: Scores, shape ``(..., vocab)``, any float dtype; half precision is computed in
            float32. A score of -inf excludes its token, which then contributes 0.
        labels: Target ids, shape ``(...)``, int64. They only mark which positions count:
            those that differ from `ignore_index`.
        alpha: Exponent of a token's share of the divergence, at least 1.
        beta: Exponent of ``1 - P``, at least 0.
        normalize: ``"log_vocab"`` divides q by ``log V``, so that ``|q| <= 1`` and a weight
            means the same for every vocabulary.
        ignore_index: The label of padding and prompt positions.
        reduction: ``"mean"`` over kept positions, ``"sum"`` or ``"none"``.
        mask: Further limits the positions that count, shape ``(...)``, bool.
        num_items_in_batch: What ``"mean"`` divides the sum by, instead of the number of kept
            positions: their number in the whole effective batch.

    Returns:
        A value of at least 0 per position, in nats to the power `alpha` (without unit if
        normalized): a scalar, or shape ``(...)`` with 0 at ignored positions for ``"none"``.
        With no kept position the result is 0 and so is its gradient.

    Raises:
        TypeError: If a dtype is wrong.
        ValueError: If the shapes disagree, a label lies outside the vocabulary, or a setting
            is out of range.

    Example:
        >>> logits = torch.tensor([[0.0, 0.0, -1e4, -1e4]])  # P = 1/2, 1/2, 0, 0
        >>> sced_loss(logits, torch.tensor([0]))  # 2 (log(2) / 2)^2 / 2
        tensor(0.1201)

    Source:
        CAREF, equation of SCED, where the sum runs over positions; its public code averages.
    """
    check_sced(alpha, beta, normalize)
    logits, _, keep = kept_positions(logits, labels, ignore_index, mask)
    values = sced_per_position(torch.log_softmax(logits, dim=-1), alpha, beta, normalize)
    return reduce_positions(values, keep, reduction, num_items_in_batch)


def sced_per_position(log_probs: Tensor, alpha: float, beta: float, normalize: Normalize | None) -> Tensor:
    """``sum_v |q|^alpha (1 - P)^beta``, shape ``(...)``, from log-probabilities ``(..., vocab)``."""
    q = kl_contributions(log_probs)
    vocab = log_probs.shape[-1]
    if normalize == "log_vocab" and vocab > 1:  # q is 0 for a vocabulary of one
        q = q / math.log(vocab)
    divergence = _absolute_power(q, alpha)
    if beta == 0:
        return divergence.sum(-1)
    # expm1: 1 - P without cancellation near P = 1.
    return (divergence * power_of_rest(-torch.expm1(log_probs), beta)).sum(-1)


def _absolute_power(q: Tensor, alpha: float) -> Tensor:
    """``|q|^alpha`` for ``alpha >= 1``, with subgradient 0 at q = 0."""
    if alpha == 1:
        return q.abs()
    if alpha == 2:
        return q * q
    return q.abs().pow(alpha)


def power_of_rest(rest: Tensor, beta: float) -> Tensor:
    """``rest^beta`` for ``rest >= 0`` and ``beta > 0``, with derivative 0 at rest = 0."""
    if beta == 1:
        return rest
    if beta == 2:
        return rest * rest
    # For beta < 1 the derivative at 0 is infinite, and inf * 0 further down would be NaN. What
    # reaches the logit, beta |q|^alpha (1 - P)^beta P, tends to 0: leave that branch out of the graph.
    positive = rest > 0
    return torch.where(positive, torch.where(positive, rest, 1.0).pow(beta), 0.0)


def check_sced(alpha: float, beta: float, normalize: object) -> None:
    """Raise unless the settings of SCED are in range."""
    check_at_least("alpha", alpha, 1)
    check_at_least("beta", beta, 0)
    check_choice("normalize", normalize, (None, *get_args(Normalize)))


@dataclass(eq=False, kw_only=True)
class ScedObjective(Objective):
    """Cross-entropy plus SCED, without the KL term: ``CE + lambda_sced * SCED``.

    Args:
        alpha: Exponent of a token's share of the divergence, at least 1.
        beta: Exponent of 1 - P, at least 0.
        lambda_sced: Weight of SCED, at least 0.
        normalize: "log_vocab" divides a token's share by log V; not in the paper.
        sced_warmup: Fraction of training, below 1, during which lambda_sced rises from 0.
        span: Where penalties apply: "all" target positions, the "answer" or the "explanation".
        separator_ids: Token ids that end the answer, needed for a span other than "all".
        shift: Compare logits at one position with the label at the next, for causal models.
        ignore_index: The label of padding and prompt positions.
        reduction: "mean" over kept positions, "sum" or "none".
        fused: "auto", "off" for the formula as it stands, or the kernel to use; see `Objective`.
    """

    alpha: float = 2.0
    beta: float = 1.0
    lambda_sced: float = 0.1
    normalize: Normalize | None = None
    sced_warmup: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sced(self.alpha, self.beta, self.normalize)
        check_at_least("lambda_sced", self.lambda_sced, 0)
        check_warmup("sced_warmup", self.sced_warmup)

    def terms(self, logits: Tensor, labels: Tensor) -> list[Term]:
        """Cross-entropy and SCED."""
        log_probs = logits.log_softmax(-1)
        sced = sced_per_position(log_probs, self.alpha, self.beta, self.normalize)
        return [
            Term("ce", cross_entropy_per_position(log_probs, labels), everywhere=True),
            Term("sced", sced, self.warmed_up(self.lambda_sced, self.sced_warmup)),
        ]

    def penalties(self) -> Penalties:
        """SCED."""
        weight = self.warmed_up(self.lambda_sced, self.sced_warmup)
        return Penalties(sced=weight, alpha=self.alpha, beta=self.beta, normalize=self.normalize)
