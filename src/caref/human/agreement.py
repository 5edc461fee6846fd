"""How far raters agree, with and without what chance would bring about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from caref.human.ratings import RATINGS
from caref.metrics.result import MetricResult, undefined
from caref.statistics.bootstrap import DRAWS, Interval, bootstrap_interval

Counts = NDArray[np.int64]
"""How many raters gave each value: shape ``(questions, values)``."""

ALL_EQUAL = "all ratings are equal: by chance they would be too"
NO_PAIR = "no question has two ratings"


def rating_counts(ratings: Sequence[Sequence[int | None]], values: int) -> Counts:
    """How many raters gave each of the values 0 to ``values - 1`` to each question; None is no rating.

    Raises:
        ValueError: If a rating is none of the values.

    Example:
        >>> rating_counts([(3, 3, 1), (0, None, 0)], 4).tolist()
        [[0, 1, 0, 2], [2, 0, 0, 0]]
    """
    counts = np.zeros((len(ratings), values), dtype=np.int64)
    for place, each in enumerate(ratings):
        for rating in each:
            if rating is not None and not 0 <= rating < values:
                raise ValueError(f"ratings must be within 0..{values - 1}, got {rating}")
            if rating is not None:
                counts[place, rating] += 1
    return counts


def pairwise_agreement(counts: Counts) -> float | None:
    """The mean over questions of the share of pairs of raters who gave the same value.

    Questions with fewer than two ratings are left out; None without any other.

    Example:
        >>> pairwise_agreement(np.array([[0, 3], [1, 2]]))
        0.6666666666666666
    """
    raters = counts.sum(axis=1)
    kept, raters = counts[raters > 1], raters[raters > 1]
    if not len(kept):
        return None
    return float(((kept * (kept - 1)).sum(axis=1) / (raters * (raters - 1))).mean())


def randolph_kappa(counts: Counts) -> float | None:
    """Randolph's free-marginal kappa: agreement beyond that of raters who draw every value equally often.

    ``(P - 1/k) / (1 - 1/k)`` with `P` the pairwise agreement and `k` the number of values; within
    [-1/(k-1), 1]. It does not ask how often each value was given: where nearly all are the same, it is
    high whatever the raters do. None without two ratings of a question.

    Example:
        >>> round(randolph_kappa(np.array([[0, 3], [1, 2]])), 6)
        0.333333

    Source:
        Randolph, 2005, Free-marginal multirater kappa, ERIC ED490661.
    """
    agreement, chance = pairwise_agreement(counts), 1 / counts.shape[1]
    return None if agreement is None else (agreement - chance) / (1 - chance)


def fleiss_kappa(counts: Counts) -> float | None:
    """Fleiss' kappa: agreement beyond that of raters who draw the values as often as they were given.

    None where all ratings are equal, or no question has two.

    Raises:
        ValueError: If questions differ in their number of ratings.

    Example:
        >>> round(fleiss_kappa(np.array([[0, 3], [1, 2]])), 6)
        -0.2

    Source:
        Fleiss, 1971, Psychological Bulletin 76(5), 378-382.
    """
    if len(set(counts.sum(axis=1).tolist())) > 1:
        raise ValueError("Fleiss' kappa needs as many ratings of each question")
    agreement = pairwise_agreement(counts)
    if agreement is None or _all_equal(counts):
        return None
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return (agreement - chance) / (1 - chance)


def krippendorff_alpha(counts: Counts, level: Literal["nominal", "ordinal"]) -> float | None:
    """Krippendorff's alpha by the package of that name; ratings may be missing.

    None where all ratings are equal, or no question has two: the disagreement expected is 0.

    Example:
        >>> round(krippendorff_alpha(np.array([[0, 3], [1, 2]]), "nominal"), 6)
        0.0

    Source:
        Krippendorff, 2011, Computing Krippendorff's Alpha-Reliability.
    """
    import krippendorff

    kept = counts[counts.sum(axis=1) > 1]
    if not len(kept) or _all_equal(kept):
        return None
    domain = list(range(counts.shape[1]))
    return float(krippendorff.alpha(value_counts=kept, value_domain=domain, level_of_measurement=level))


def agreement(
    ratings: Sequence[Sequence[int]], owners: Sequence[str] | None = None, *, draws: int = DRAWS
) -> MetricResult:
    """Every measure of agreement about one explanation of each question.

    As in FEB's script, ``unanimous`` and ``randolph_kappa`` are of two values: yes and weak yes are one,
    weak no and no the other; so is ``fleiss_kappa``, its counterpart that knows how often each was given.
    ``pairwise_agreement``, ``alpha_ordinal`` and ``alpha_nominal`` are of the four words.

    Args:
        ratings: The ratings of each question, 0 (no) to 3 (yes), as many of each.
        owners: Whose each place is, as in `bootstrap_interval`. None: all are different questions.
        draws: Of the bootstrap; 0 gives no intervals.

    Returns:
        The values with 95 % intervals over questions, and the count ``n``.

    Source:
        FEB: Marasovic et al., 2022, arXiv:2111.08284.
    """
    words = rating_counts(ratings, len(RATINGS))
    if not len(words):
        return undefined("no ratings", *_MEASURES, unanimous=0, n=0)
    merged = words.reshape(len(words), 2, 2).sum(axis=2)
    tables = {name: merged if of_two else words for name, (of_two, _) in _MEASURES.items()}
    values: dict[str, float | None] = {name: of(tables[name]) for name, (_, of) in _MEASURES.items()}
    intervals: dict[str, Interval] = {}
    for name, (_, of) in _MEASURES.items():
        found = _interval(of, tables[name], owners, draws) if values[name] is not None else None
        if found is not None:
            intervals[name] = found
    few = NO_PAIR if (words.sum(axis=1) < 2).all() else ALL_EQUAL
    unanimous = int(((merged > 0).sum(axis=1) == 1).sum())
    return MetricResult(
        values={"unanimous": unanimous, **values, "n": len(words)},
        notes={name: few for name, value in values.items() if value is None},
        intervals=intervals,
    )


_MEASURES: dict[str, tuple[bool, Callable[[Counts], float | None]]] = {
    "randolph_kappa": (True, randolph_kappa),
    "fleiss_kappa": (True, fleiss_kappa),
    "pairwise_agreement": (False, pairwise_agreement),
    "alpha_ordinal": (False, lambda counts: krippendorff_alpha(counts, "ordinal")),
    "alpha_nominal": (False, lambda counts: krippendorff_alpha(counts, "nominal")),
}
"""Name to whether it is of the two merged values, and the measure."""


def _interval(
    of: Callable[[Counts], float | None], counts: Counts, owners: Sequence[str] | None, draws: int
) -> Interval | None:
    if not draws:
        return None
    examples = len(counts) if owners is None else owners
    return bootstrap_interval(lambda places: of(counts[places]), examples, draws=draws)


def _all_equal(counts: Counts) -> bool:
    return int((counts.sum(axis=0) > 0).sum()) < 2
