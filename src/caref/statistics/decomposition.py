"""A difference of two products as the parts of their factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caref.statistics.bootstrap import Interval, percentile_interval
from caref.statistics.nested_bootstrap import resampled_means
from caref.statistics.number import Number

DRAWS = 2_000
SEED = 0

NO_RIGHT = "one of the two has no right answer, so its F1 given right is undefined"


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A difference in nBERT as the sum of two parts, in percentage points.

    Attributes:
        difference: Of the second from the first.
        accuracy_part: What it is because answers are more or less often right.
        explanation_part: What it is because explanations of right answers are better or worse.
    """

    difference: float
    accuracy_part: Number
    explanation_part: Number


def decompose(
    first_accuracy: float, first_nbert: float, second_accuracy: float, second_nbert: float
) -> Decomposition:
    """Split a difference in nBERT into its accuracy part and its explanation part.

    ``nBERT = a f``, with `a` the share of right answers and `f` the F1 given a right answer, so that exactly

    ``a2 f2 - a1 f1 = (a2 - a1) (f1 + f2) / 2 + (f2 - f1) (a1 + a2) / 2``.

    Each part is the change of one factor at the mean of the other: neither setting is privileged, and
    swapping them changes the signs alone.

    Args:
        first_accuracy: The first setting's accuracy in percent.
        first_nbert: Its nBERT in percent.
        second_accuracy: The second setting's accuracy in percent.
        second_nbert: Its nBERT in percent.

    Returns:
        The parts; undefined where a setting has no right answer.

    Example:
        >>> parts = decompose(80.0, 72.0, 90.0, 80.1)
        >>> round(parts.accuracy_part.value, 2), round(parts.explanation_part.value, 2)
        (8.95, -0.85)
        >>> decompose(0.0, 0.0, 50.0, 45.0).accuracy_part.value is None
        True

    Source:
        Kitagawa, 1955, Components of a Difference Between Two Rates, JASA 50; with two factors it is the
        value of Shapley, 1953.
    """
    difference = second_nbert - first_nbert
    if first_accuracy == 0 or second_accuracy == 0:
        return Decomposition(difference, Number(None, NO_RIGHT), Number(None, NO_RIGHT))
    f1, f2 = first_nbert / first_accuracy, second_nbert / second_accuracy
    return Decomposition(
        difference,
        accuracy_part=Number((second_accuracy - first_accuracy) * (f1 + f2) / 2),
        explanation_part=Number((f2 - f1) * (first_accuracy + second_accuracy) / 2),
    )


def decomposition_intervals(
    splits: Sequence[NDArray[np.float64]], *, draws: int = DRAWS, seed: int = SEED
) -> tuple[Interval | None, Interval | None]:
    """The 95 % intervals of the accuracy part and of the explanation part.

    Args:
        splits: One array per split, of shape ``(examples, 4)``: an example's accuracy (100 or 0) and nBERT in
            percent by the first setting, then by the second, as `decompose` takes them.
        draws: How often splits, and examples within each, are drawn.
        seed: Of the draws.

    Returns:
        Percentile intervals over the draws where both settings have a right answer; None where these are
        fewer than half, and of a single pair.

    Example:
        >>> pairs = np.array([[100.0, 90.0, 100.0, 80.0], [0.0, 0.0, 100.0, 70.0]] * 20)
        >>> accuracy, explanation = decomposition_intervals([pairs])
        >>> accuracy[0] > 0 > explanation[1]
        True
    """
    if sum(map(len, splits)) < 2:
        return None, None
    drawn = (decompose(*row) for row in resampled_means(splits, draws=draws, seed=seed).tolist())
    parts = [
        (each.accuracy_part.value, each.explanation_part.value)
        for each in drawn
        if each.accuracy_part.value is not None and each.explanation_part.value is not None
    ]
    if 2 * len(parts) < draws:
        return None, None
    accuracy, explanation = zip(*parts, strict=True)
    return percentile_interval(accuracy), percentile_interval(explanation)
