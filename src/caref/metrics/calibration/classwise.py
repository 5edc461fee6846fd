"""The calibration of every label's probability, where all questions have the same labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caref.metrics.calibration.binned import BINS, bin_sums, equal_width_places, mean_gap
from caref.metrics.calibration.null import DRAWS, SEED, in_blocks
from caref.metrics.calibration.scored import Candidates

Array = NDArray[np.float64]
Places = NDArray[np.intp]


def label_columns(candidates: Candidates, rows: Places) -> tuple[Array, Places] | None:
    """The probability of each label and the place of the gold one, the labels in alphabetical order.

    Args:
        candidates: Of the scored predictions.
        rows: Those to take, their gold answer among the candidates.

    Returns:
        Of shapes ``(rows, labels)`` and ``(rows,)``; None where the rows do not all have the same labels,
        each once.
    """
    orders = [sorted(range(len(labels)), key=labels.__getitem__) for labels in candidates.labels]
    found = {tuple(candidates.labels[row][place] for place in orders[row]) for row in rows}
    if len(found) != 1 or len(set(*found)) < len(next(iter(found))):
        return None
    order = np.array([orders[row] for row in rows], dtype=np.intp)
    gold = (order == candidates.gold[rows][:, None]).argmax(axis=1)
    return np.take_along_axis(candidates.probabilities[rows], order, axis=1), gold


def classwise_error(probabilities: Array, gold: Places, *, bins: int = BINS) -> float:
    """The mean over labels of the calibration error of that label's probability.

    ``1/K sum over labels k of sum over bins of |sum of (1[gold = k] - p_k) in the bin| / n``, with bins of
    equal width over `p_k`.

    Args:
        probabilities: Of shape ``(n, labels)``, at least one row.
        gold: The place of the gold label in each row, of shape ``(n,)``.
        bins: How many.

    Returns:
        In [0, 1].

    Example:
        >>> round(classwise_error(np.array([[0.8, 0.2], [0.8, 0.2]]), np.array([0, 0])), 3)
        0.2

    Source:
        Kull et al., 2019, arXiv:1910.12656.
    """
    return float(classwise_errors(probabilities, gold, bins))


def classwise_errors(probabilities: Array, gold: Places, bins: int, weights: Array | None = None) -> Array:
    """`classwise_error` of many draws.

    Args:
        probabilities: Of shape ``(n, labels)``.
        gold: Of shape ``(n,)`` or ``(draws, n)``.
        bins: How many.
        weights: How often each row was drawn, of shape ``(draws, n)``; once without it.
    """
    gaps = []
    for label, p in enumerate(probabilities.T):
        outcomes = (gold == label).astype(np.float64)
        gaps.append(mean_gap(bin_sums(equal_width_places(p, bins), p, outcomes, bins, weights)))
    return np.mean(gaps, axis=0)


def null_classwise_errors(
    probabilities: Array, *, bins: int = BINS, draws: int = DRAWS, seed: int = SEED
) -> Array:
    """The classwise error were the gold label of each row drawn by the row's probabilities.

    Args:
        probabilities: Of shape ``(n, labels)``; the order of the rows does not matter.
        bins: How many.
        draws: How often all labels are drawn.
        seed: Of the draws.

    Returns:
        Of shape ``(draws,)``.
    """
    ordered = probabilities[np.lexsort(probabilities.T)]
    edges = np.cumsum(ordered / ordered.sum(axis=1, keepdims=True), axis=1)[:, :-1]
    generator = np.random.default_rng(seed)

    def some(rows: int) -> dict[str, Array]:
        drawn = generator.random((rows, len(ordered), 1))
        return {"error": classwise_errors(ordered, (drawn >= edges).sum(axis=2), bins)}

    return in_blocks(some, draws, ordered.size)["error"]
