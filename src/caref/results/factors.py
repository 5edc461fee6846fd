"""nBERT as its factors, accuracy and F1 given right, and a difference in it as their parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from caref.results.setting import Setting, columns_of, have
from caref.statistics.bootstrap import Interval
from caref.statistics.decomposition import Decomposition, decompose, decomposition_intervals
from caref.statistics.paired import Pairs, pair

COLUMNS = ("correct", "nbert")


@dataclass(frozen=True, slots=True)
class Factors:
    """A setting's nBERT and its factors, in percent: ``nbert = accuracy / 100 * f1_given_right``.

    Attributes:
        accuracy: Over splits, of each split's accuracy.
        f1_given_right: `nbert` over the share of right answers: the product is exact. None without any.
        nbert: Over splits, of each split's nBERT.
    """

    accuracy: float
    f1_given_right: float | None
    nbert: float


@dataclass(frozen=True, slots=True)
class DecomposedDifference:
    """Where a difference in nBERT comes from.

    Attributes:
        task: Its name.
        reference: The reference's name.
        setting: The other's name.
        before: The reference's factors.
        after: The other's.
        parts: The other minus the reference, in percentage points.
        accuracy_interval: The 95 % interval of the accuracy part, over splits and examples.
        explanation_interval: That of the explanation part.
    """

    task: str
    reference: str
    setting: str
    before: Factors
    after: Factors
    parts: Decomposition
    accuracy_interval: Interval | None
    explanation_interval: Interval | None


def decomposed(reference: Setting, others: Sequence[Setting]) -> list[DecomposedDifference]:
    """The differences in nBERT from a reference, where both settings have answers and explanations scored.

    Raises:
        CarefError: As in `caref.results.comparison.compare`.
    """
    return [
        _decomposed(task, reference, other)
        for task, splits in reference.tasks.items()
        for other in others
        if task in other.tasks and have(splits, *COLUMNS) and have(other.tasks[task], *COLUMNS)
    ]


def _decomposed(task: str, reference: Setting, setting: Setting) -> DecomposedDifference:
    right, nbert = (
        pair(*columns_of(reference.tasks[task], setting.tasks[task], column)) for column in COLUMNS
    )
    a1, a2 = (100 * mean for mean in right.means)
    b1, b2 = nbert.means
    accuracy, explanation = decomposition_intervals(_columns(right, nbert))
    return DecomposedDifference(
        task=task,
        reference=reference.name,
        setting=setting.name,
        before=Factors(a1, 100 * b1 / a1 if a1 else None, b1),
        after=Factors(a2, 100 * b2 / a2 if a2 else None, b2),
        parts=decompose(a1, b1, a2, b2),
        accuracy_interval=accuracy,
        explanation_interval=explanation,
    )


def _columns(right: Pairs, nbert: Pairs) -> list[np.ndarray]:
    """For each split an array of shape ``(examples, 4)``, as `decomposition_intervals` takes it."""
    return [
        np.stack([100 * c1, b1, 100 * c2, b2], axis=1)
        for c1, b1, c2, b2 in zip(right.first, nbert.first, right.second, nbert.second, strict=True)
    ]
