"""Cross-entropy, the term that every objective keeps."""

from dataclasses import dataclass

import torch
from torch import Tensor

from caref.losses.objective import Objective, Term
from caref.losses.penalties import Penalties
from caref.losses.reduction import Reduction, kept_positions, reduce_positions


def cross_entropy_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    mask: Tensor | None = None,
    num_items_in_batch: int | Tensor | None = None,
) -> Tensor:
    """Negative log-likelihood of the label at each kept position, in nats.

    Args:
        logits: Finite scores, shape ``(..., vocab)``, any float dtype; half precision is
            computed in float32.
        labels: Target ids, shape ``(...)``, int64.
        ignore_index: The label of padding and prompt positions.
        reduction: ``"mean"`` over kept positions, ``"sum"`` or ``"none"``.
        mask: Further limits the positions that count, shape ``(...)``, bool.
        num_items_in_batch: What ``"mean"`` divides the sum by, instead of the number of kept
            positions: their number in the whole effective batch.

    Returns:
        A scalar, or shape ``(...)`` with 0 at ignored positions for ``"none"``. With no kept
        position the result is 0 and so is its gradient.

    Raises:
        TypeError: If a dtype is wrong.
        ValueError: If the shapes disagree, a label lies outside the vocabulary or
            `reduction` is unknown.

    Example:
        >>> logits = torch.zeros(1, 2, 4)  # uniform over 4 tokens
        >>> cross_entropy_loss(logits, torch.tensor([[3, -100]]))  # log(4)
        tensor(1.3863)
    """
    logits, labels, keep = kept_positions(logits, labels, ignore_index, mask)
    values = cross_entropy_per_position(torch.log_softmax(logits, dim=-1), labels)
    return reduce_positions(values, keep, reduction, num_items_in_batch)


def cross_entropy_per_position(log_probs: Tensor, labels: Tensor) -> Tensor:
    """``-log P[t, label]``, shape ``(...)``, from log-probabilities ``(..., vocab)``."""
    return -log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)


@dataclass(eq=False, kw_only=True)
class CrossEntropyObjective(Objective):
    """Cross-entropy alone: the baseline. It has no penalty, so `span` changes nothing.

    Args:
        span: Where penalties apply: "all" target positions, the "answer" or the "explanation".
        separator_ids: Token ids that end the answer, needed for a span other than "all".
        shift: Compare logits at one position with the label at the next, for causal models.
        ignore_index: The label of padding and prompt positions.
        reduction: "mean" over kept positions, "sum" or "none".
        fused: "auto", "off" for the formula as it stands, or the kernel to use; see `Objective`.
    """

    def terms(self, logits: Tensor, labels: Tensor) -> list[Term]:
        """Cross-entropy."""
        return [Term("ce", cross_entropy_per_position(logits.log_softmax(-1), labels), everywhere=True)]

    def penalties(self) -> Penalties:
        """None: cross-entropy alone."""
        return Penalties()
