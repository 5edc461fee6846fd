"""What a difference in a metric says about the difference in ratings.

Pairs of generated explanations of the same data set are put into bins by how far apart the metric has
them, and it is counted how often the one with the higher number is the better rated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from caref.human.association import Scopes
from caref.human.resampling import Places
from caref.statistics.bootstrap import Interval, percentile_interval

Numbers = NDArray[np.float64]

EDGES = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, np.inf)
"""Of the bins, in points of the metric; a difference on an edge is in the upper bin."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Pairs of explanations whose numbers differ by `low` up to, not including, `high` points.

    Attributes:
        low: In points; pairs of equal numbers are in no bin.
        high: In points; None in the last bin.
        pairs: How many there are.
        tied: Those whose mean ratings are equal.
        concordance: Of the others, the share whose higher number has the higher mean rating; 0.5 is
            guessing. None without any.
        interval: Its 95 % bootstrap interval over questions.
        gain: By how much the mean rating of the higher number is above that of the lower, on average over all
            pairs, in points of 100. None without any.
    """

    low: float
    high: float | None
    pairs: int
    tied: int
    concordance: float | None
    interval: Interval | None
    gain: float | None


@dataclass(frozen=True, slots=True)
class SystemPair:
    """Two systems on one data set: by how much the first is above the second, each on its own questions."""

    task: str
    first: str
    second: str
    metric: float
    plausibility: float

    @property
    def agree(self) -> bool:
        """Whether both differences have the same sign."""
        return self.metric * self.plausibility > 0


@dataclass(frozen=True)
class Differences:
    """What a difference in BERTScore says: pairs of explanations, of one data set and of one question, and
    pairs of systems."""

    computed_by: Mapping[str, object]
    explanations: Sequence[Bin]
    same_question: Sequence[Bin]
    systems: Sequence[SystemPair]


def bins(
    scores: Numbers,
    ratings: Numbers,
    scopes: Scopes,
    drawn: Sequence[Places],
    *,
    questions: Sequence[str] | None = None,
    edges: Sequence[float] = EDGES,
) -> list[Bin]:
    """The bins of pairs within a data set.

    Args:
        scores: The metric of each explanation, no NaN.
        ratings: Its mean rating within [0, 1].
        scopes: The data sets.
        drawn: Of the bootstrap, from `drawn_places`.
        questions: Names of the questions; given, only pairs of one question count.
        edges: Of the bins, increasing.
    """
    times = _times_drawn(drawn, len(scores))
    sums = np.zeros((len(edges) - 1, 4))  # pairs, differing in rating, concordant, gain
    again = np.zeros((len(edges) - 1, 2, len(drawn)))  # differing and concordant, for every draw
    for inside in scopes.of_task.values():
        places = np.flatnonzero(inside)
        higher = scores[places][:, None] - scores[places][None, :]
        rated = ratings[places][:, None] - ratings[places][None, :]
        allowed = np.ones_like(higher, dtype=bool)
        if questions is not None:
            names = np.array(questions)[places]
            allowed = names[:, None] == names[None, :]
        for place, (low, high) in enumerate(pairwise(edges)):
            # Of every pair the order in which the first has the higher number.
            chosen = allowed & (higher > 0) & (higher >= low) & (higher < high)
            # What differs by less than rounding is equal: ratings are thirds.
            differing, concordant = chosen & (np.abs(rated) > 1e-9), chosen & (rated > 1e-9)
            sums[place] += chosen.sum(), differing.sum(), concordant.sum(), 100 * rated[chosen].sum()
            for kind, matrix in enumerate((differing, concordant)):
                again[place, kind] += _weighted(times[:, places], matrix)
    found = []
    for (low, high), (pairs, differing, concordant, gain), drawn_counts in zip(
        pairwise(edges), sums, again, strict=True
    ):
        shares = drawn_counts[1][drawn_counts[0] > 0] / drawn_counts[0][drawn_counts[0] > 0]
        found.append(
            Bin(
                low,
                high if np.isfinite(high) else None,
                int(pairs),
                int(pairs - differing),
                float(concordant / differing) if differing else None,
                percentile_interval(shares) if differing and 2 * len(shares) >= len(drawn) > 0 else None,
                float(gain / pairs) if pairs else None,
            )
        )
    return found


def system_pairs(scores: Numbers, ratings: Numbers, scopes: Scopes) -> Iterator[SystemPair]:
    """Every two systems of a data set, the one with the higher mean score first."""
    means = {
        name: (float(scores[inside].mean()), 100 * float(ratings[inside].mean()))
        for name, inside in scopes.of_system.items()
    }
    for one, other in combinations(means, 2):
        if one.split("/")[0] == other.split("/")[0]:
            first, second = sorted((one, other), key=lambda name: -means[name][0])
            task, _, name = first.partition("/")
            metric, plausibility = np.subtract(means[first], means[second]).tolist()
            yield SystemPair(task, name, second.partition("/")[2], metric, plausibility)


def _times_drawn(drawn: Sequence[Places], n: int) -> NDArray[np.float32]:
    """How often each place was drawn: shape ``(draws, n)``."""
    if not drawn:
        return np.zeros((0, n), dtype=np.float32)
    return np.stack([np.bincount(places, minlength=n) for places in drawn]).astype(np.float32)


def _weighted(times: NDArray[np.float32], chosen: NDArray[np.bool_]) -> Numbers:
    """For each draw, how many of the chosen pairs it has: a pair counts the product of its two counts."""
    once = times @ chosen.astype(np.float32)
    return np.einsum("dn,dn->d", once, times, dtype=np.float64)
