"""Whether the more confident answers are the right ones: AUROC and the risk-coverage curve.

Everything here depends on the order of the confidences alone. Equal ones are in every order at once: a
number is its expectation over random orders within ties.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caref.metrics.calibration.checks import checked

Array = NDArray[np.float64]

COVERAGE = (4, 5)
"""The coverage at which the accuracy is told, as a fraction: 80 %."""


def auroc(confidences: ArrayLike, correct: ArrayLike) -> float | None:
    """The probability that a right answer has a higher confidence than a wrong one, ties counting 1/2.

    Args:
        confidences: In [0, 1], at least one.
        correct: 1 or 0 for each.

    Returns:
        In [0, 1], 1/2 of confidences that say nothing; None where all answers are right or all wrong.

    Raises:
        CarefError: If a confidence or an outcome is not of these values, or their numbers differ.

    Example:
        >>> auroc([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0])
        0.875
        >>> auroc([0.9, 0.8], [1, 1])
    """
    f, c = checked(confidences, correct)
    value = float(aurocs(ranked(f, c))[0])
    return None if np.isnan(value) else value


def risk_coverage_curve(confidences: ArrayLike, correct: ArrayLike) -> tuple[Array, Array]:
    """The share of wrong answers among the `k` most confident ones, for `k` from 1 to `n`.

    Returns:
        Coverage ``k / n`` and risk, each of shape ``(n,)``.

    Example:
        >>> coverage, risk = risk_coverage_curve([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0])
        >>> coverage.tolist(), risk.round(3).tolist()
        ([0.25, 0.5, 0.75, 1.0], [0.0, 0.25, 0.333, 0.5])

    Source:
        El-Yaniv and Wiener, 2010, Journal of Machine Learning Research 11.
    """
    f, c = checked(confidences, correct)
    groups = ranked(f, c)
    size = (groups.right + groups.wrong)[0]
    taken = np.arange(1, f.size + 1)
    wrong = np.cumsum(np.repeat(groups.wrong[0] / size, size.astype(np.intp)))
    return taken / f.size, wrong / taken


def area_under_risk(confidences: ArrayLike, correct: ArrayLike) -> float:
    """The mean of the risk over all coverages (AURC), in [0, 1]: the lower the better.

    Example:
        >>> round(area_under_risk([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0]), 4)
        0.2708

    Source:
        Geifman, Uziel and El-Yaniv, 2019, arXiv:1805.08206.
    """
    f, c = checked(confidences, correct)
    return float(areas_under_risk(ranked(f, c))[0])


def excess_area_under_risk(confidences: ArrayLike, correct: ArrayLike) -> float:
    """`area_under_risk` less what it would be with every right answer before every wrong one, at least 0.

    Example:
        >>> excess_area_under_risk([0.9, 0.8], [1, 0])
        0.0

    Source:
        Geifman, Uziel and El-Yaniv, 2019, arXiv:1805.08206, with the exact sum in place of its limit.
    """
    f, c = checked(confidences, correct)
    return float(excess_areas(ranked(f, c))[0])


def accuracy_at_coverage(confidences: ArrayLike, correct: ArrayLike) -> float:
    """The percentage of right answers among the most confident 80 %, rounded up to whole predictions.

    Example:
        >>> accuracy_at_coverage([0.9, 0.8, 0.7, 0.6, 0.5], [1, 1, 1, 1, 0])
        100.0
    """
    f, c = checked(confidences, correct)
    return float(accuracies_at_coverage(ranked(f, c))[0])


@dataclass(frozen=True, slots=True)
class Ranked:
    """How many predictions of each confidence are right and wrong, the highest confidence first.

    Attributes:
        right: Of shape ``(draws, confidences)``.
        wrong: Of the same shape.
    """

    right: Array
    wrong: Array


def ranked(confidences: Array, correct: Array, weights: Array | None = None) -> Ranked:
    """Group by confidence.

    Args:
        confidences: Of shape ``(n,)``.
        correct: Of shape ``(n,)``.
        weights: How often each was drawn, of shape ``(draws, n)``; once, in one draw, without it.
    """
    drawn = np.ones((1, confidences.size)) if weights is None else weights
    order = np.argsort(-confidences, kind="stable")
    starts = np.unique(-confidences[order], return_index=True)[1]
    right = np.add.reduceat((drawn * correct)[:, order], starts, axis=1)
    return Ranked(right, np.add.reduceat(drawn[:, order], starts, axis=1) - right)


def aurocs(groups: Ranked) -> Array:
    """`auroc` of each draw, NaN where it is undefined."""
    higher = np.cumsum(groups.right, axis=1) - 0.5 * groups.right
    pairs = groups.right.sum(axis=1) * groups.wrong.sum(axis=1)
    ordered = (groups.wrong * higher).sum(axis=1)
    return np.divide(ordered, pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0)


def areas_under_risk(groups: Ranked) -> Array:
    """`area_under_risk` of each draw."""
    size = groups.right + groups.wrong
    before = np.cumsum(size, axis=1) - size
    wrong_before = np.cumsum(groups.wrong, axis=1) - groups.wrong
    share = np.divide(groups.wrong, size, out=np.zeros_like(size), where=size > 0)
    # In a group of m that begins after A predictions, E of them wrong, with a share q of wrong ones, the risk
    # at its j-th is (E + j q) / (A + j); summed over j: m q + (E - A q) times the sum of 1 / (A + j).
    total = size.sum(axis=1)
    inverse = _harmonic(int(total.max()))
    reciprocals = inverse[(before + size).astype(np.intp)] - inverse[before.astype(np.intp)]
    return (groups.wrong + (wrong_before - before * share) * reciprocals).sum(axis=1) / total


def excess_areas(groups: Ranked) -> Array:
    """`excess_area_under_risk` of each draw."""
    wrong, right = groups.wrong.sum(axis=1), groups.right.sum(axis=1)
    total = wrong + right
    inverse = _harmonic(int(total.max()))
    least = wrong - right * (inverse[total.astype(np.intp)] - inverse[right.astype(np.intp)])
    return np.maximum(areas_under_risk(groups) - least / total, 0.0)


def accuracies_at_coverage(groups: Ranked) -> Array:
    """`accuracy_at_coverage` of each draw, in percent."""
    total = (groups.right + groups.wrong).sum(axis=1)
    part, whole = COVERAGE
    taken = -(-part * total // whole)
    return 100 * (1 - _wrong_among(groups, taken) / taken)


def _wrong_among(groups: Ranked, taken: Array | NDArray[np.intp]) -> Array:
    """How many of the `taken` most confident are wrong, expected over the orders of the last group."""
    size = groups.right + groups.wrong
    before = np.cumsum(size, axis=1) - size
    share = np.clip((taken[:, None] - before) / np.maximum(size, 1), 0.0, 1.0)
    return (groups.wrong * share).sum(axis=1)


def _harmonic(largest: int) -> Array:
    """``1 + 1/2 + ... + 1/k`` for `k` from 0."""
    return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, largest + 1))])
