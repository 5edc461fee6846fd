"""KL divergence of the predicted distribution from the uniform one."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from caref.losses.cross_entropy import cross_entropy_per_position
from caref.losses.objective import Objective, Term
from caref.losses.penalties import Penalties
from caref.losses.reduction import Reduction, check_at_least, kept_positions, reduce_positions


def kl_uniform_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    mask: Tensor | None = None,
    num_items_in_batch: int | Tensor | None = None,
) -> Tensor:
    """KL divergence from the uniform distribution at each kept position, in nats.

    ``KL = sum_v P_v (log P_v + log V) = log V - H(P)`` with ``P = softmax(logits)``: a
    positive weight on it flattens the model. It is a confidence penalty, up to a constant.

    Args:
        logits: Scores, shape ``(..., vocab)``, any float dtype; half precision is computed in
            float32. A score of -inf excludes its token, which then contributes 0.
        labels: Target ids, shape ``(...)``, int64. They only mark which positions count:
            those that differ from `ignore_index`.
        ignore_index: The label of padding and prompt positions.
        reduction: ``"mean"`` over kept positions, ``"sum"`` or ``"none"``.
        mask: Further limits the positions that count, shape ``(...)``, bool.
        num_items_in_batch: What ``"mean"`` divides the sum by, instead of the number of kept
            positions: their number in the whole effective batch.

    Returns:
        Divergence in nats, within ``[0, log(vocab)]`` per position: a scalar, or shape
        ``(...)`` with 0 at ignored positions for ``"none"``. With no kept position the
        result is 0 and so is its gradient.

    Raises:
        TypeError: If a dtype is wrong.
        ValueError: If the shapes disagree, a label lies outside the vocabulary or
            `reduction` is unknown.

    Example:
        >>> logits = torch.tensor([[0.0, 0.0, -1e4, -1e4]])  # half of 4 tokens, equally
        >>> kl_uniform_loss(logits, torch.tensor([0]))  # log(4) - log(2)
        tensor(0.6931)
    """
    logits, _, keep = kept_positions(logits, labels, ignore_index, mask)
    values = kl_uniform_per_position(torch.log_softmax(logits, dim=-1))
    return reduce_positions(values, keep, reduction, num_items_in_batch)


def kl_contributions(log_probs: Tensor) -> Tensor:
    """``q[t, v] = P (log P + log V)``, shape ``(..., vocab)``; 0 where P is 0."""
    # log P = -inf would give 0 * inf; any finite stand-in gives P log P = 0, its limit.
    log_probs = log_probs.clamp(min=torch.finfo(log_probs.dtype).min)
    return log_probs.exp() * (log_probs + math.log(log_probs.shape[-1]))


def kl_uniform_per_position(log_probs: Tensor) -> Tensor:
    """``sum_v q[t, v]``, shape ``(...)``, from log-probabilities ``(..., vocab)``."""
    return kl_contributions(log_probs).sum(-1)


@dataclass(eq=False, kw_only=True)
class KlUniformObjective(Objective):
    """Cross-entropy plus KL from uniform: ``CE + lambda_kl * KL``.

    Args:
        lambda_kl: Weight of the KL divergence from uniform, at least 0.
        span: Where penalties apply: "all" target positions, the "answer" or the "explanation".
        separator_ids: Token ids that end the answer, needed for a span other than "all".
        shift: Compare logits at one position with the label at the next, for causal models.
        ignore_index: The label of padding and prompt positions.
        reduction: "mean" over kept positions, "sum" or "none".
        fused: "auto", "off" for the formula as it stands, or the kernel to use; see `Objective`.
    """

    lambda_kl: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("lambda_kl", self.lambda_kl, 0)

    def terms(self, logits: Tensor, labels: Tensor) -> list[Term]:
        """Cross-entropy and KL."""
        log_probs = logits.log_softmax(-1)
        return [
            Term("ce", cross_entropy_per_position(log_probs, labels), everywhere=True),
            Term("kl", kl_uniform_per_position(log_probs), self.lambda_kl),
        ]

    def penalties(self) -> Penalties:
        """KL."""
        return Penalties(kl=self.lambda_kl)
