"""Drawing rated questions anew, for the intervals of many statistics at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caref.statistics import bootstrap
from caref.statistics.bootstrap import DRAWS, SEED, Interval, percentile_interval

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and its 95 % bootstrap interval over questions.

    Attributes:
        value: None where it is undefined.
        interval: None where it is, and where it is undefined in more than half of the draws.
        n: How many places it is of.
        note: Why it is undefined.
    """

    value: float | None
    interval: Interval | None = None
    n: int = 0
    note: str | None = None


def drawn_places(owners: Sequence[str], *, draws: int = DRAWS, seed: int = SEED) -> list[Places]:
    """The places of questions drawn with replacement, for statistics that all look at the same draws.

    Args:
        owners: Whose each place is: the same question, answered by several systems, is one owner.
        draws: How often as many owners are drawn as there are.
        seed: Of the draws.

    Example:
        >>> [places.tolist() for places in drawn_places(["a", "a"], draws=2)]
        [[0, 1], [0, 1]]
    """
    return list(bootstrap.drawn_places(owners, draws=draws, seed=seed))


def estimates(
    statistics: Callable[[Places], Mapping[str, float | None]],
    counts: Mapping[str, int],
    notes: Mapping[str, str],
    n: int,
    drawn: Sequence[Places],
) -> dict[str, Estimate]:
    """Numbers of all places, with their intervals over the drawn ones.

    Args:
        statistics: Numbers by name, of any places; None where one is undefined.
        counts: Of how many places each is.
        notes: Why one is undefined, for those that may be.
        n: The number of places.
        drawn: From `drawn_places`.
    """
    values = statistics(np.arange(n))
    again: dict[str, list[float]] = {name: [] for name in values}
    for places in drawn:
        for name, value in statistics(places).items():
            if value is not None:
                again[name].append(value)
    found = {}
    for name, value in values.items():
        known = value is not None and again[name] and 2 * len(again[name]) >= len(drawn)
        found[name] = Estimate(
            value,
            percentile_interval(again[name]) if known else None,
            counts[name],
            None if value is not None else notes.get(name, "undefined of these numbers"),
        )
    return found
