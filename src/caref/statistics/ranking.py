"""Several settings over several blocks: mean ranks, and which of them cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from caref.errors import CarefError
from caref.statistics.number import Number

ALPHA = 0.05
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Ranking:
    """Settings ranked in every block.

    Attributes:
        mean_ranks: Setting to its mean rank, 1 the best; in their order.
        blocks: How many blocks there are.
        p_value: Of Friedman's test that all settings are alike.
        critical_difference: Nemenyi's: mean ranks that differ by at least this much differ at the level 0.05.
        groups: The largest sets of settings, each in the order of ranks, that cannot be told apart: all of
            them, where Friedman's test does not reject.
    """

    mean_ranks: dict[str, float]
    blocks: int
    p_value: Number
    critical_difference: Number
    groups: tuple[tuple[str, ...], ...]


def rank(values: Mapping[str, Sequence[float]], *, higher_is_better: bool) -> Ranking:
    """Rank settings by a value in every block, and compare their mean ranks.

    Friedman's test, with ties, then Nemenyi's. Blocks count as independent, which splits of one task, drawn
    from one pool, are not quite.

    Args:
        values: Setting to one value per block, the same blocks in the same order for all.
        higher_is_better: Whether the largest value has rank 1; equal ones share the mean of their ranks.

    Raises:
        CarefError: If there are fewer than two settings, no block, or not as many blocks for each.

    Example:
        >>> scores = {"a": [3.0, 5.0, 4.0], "b": [2.0, 4.0, 4.0], "c": [1.0, 1.0, 1.0]}
        >>> found = rank(scores, higher_is_better=True)
        >>> found.mean_ranks, round(found.critical_difference.value, 3), found.groups
        ({'a': 1.1666666666666667, 'b': 1.8333333333333333, 'c': 3.0}, 1.914, (('a', 'b', 'c'),))

    Source:
        Demsar, 2006, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7.
    """
    from scipy.stats import rankdata

    sizes = {len(each) for each in values.values()}
    if len(values) < 2 or len(sizes) != 1 or not min(sizes):
        raise CarefError("a ranking needs at least two settings with a value for each of the same blocks")
    table = np.array(list(values.values()), dtype=np.float64)
    ranks = rankdata(-table if higher_is_better else table, axis=0)
    means = ranks.mean(axis=1)
    order = np.argsort(means, kind="stable")
    names = list(values)
    mean_ranks = {names[place]: float(means[place]) for place in order}
    p_value, critical = _friedman(table), _critical_difference(len(names), table.shape[1])
    return Ranking(mean_ranks, table.shape[1], p_value, critical, _groups(mean_ranks, p_value, critical))


def nemenyi_critical_value(settings: int, *, alpha: float = ALPHA) -> float:
    """The studentized range of so many means with infinite degrees of freedom, over the root of 2.

    Example:
        >>> round(nemenyi_critical_value(4), 3)
        2.569
    """
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(1 - alpha, settings, np.inf)) / math.sqrt(2)


def _friedman(table: np.ndarray) -> Number:
    from scipy.stats import friedmanchisquare

    settings, blocks = table.shape
    if settings < 3:
        return Number(None, "Friedman's test needs at least three settings")
    if blocks < 2:
        return Number(None, "one split")
    if (np.ptp(table, axis=0) == 0).all():
        return Number(None, "all settings are equal in every split")
    return Number(float(friedmanchisquare(*table).pvalue))


def _critical_difference(settings: int, blocks: int) -> Number:
    if settings < 3:
        return Number(None, "Nemenyi's test needs at least three settings")
    if blocks < 2:
        return Number(None, "one split")
    return Number(nemenyi_critical_value(settings) * math.sqrt(settings * (settings + 1) / (6 * blocks)))


def _groups(
    mean_ranks: Mapping[str, float], p_value: Number, critical: Number
) -> tuple[tuple[str, ...], ...]:
    names, ranks = list(mean_ranks), list(mean_ranks.values())
    if p_value.value is None or critical.value is None or p_value.value >= ALPHA:
        return (tuple(names),)
    groups: list[tuple[int, int]] = []
    for first in range(len(names)):
        last = max(
            place
            for place in range(first, len(names))
            if place == first or ranks[place] - ranks[first] < critical.value - _ROUNDING
        )
        if not groups or last > groups[-1][1]:
            groups.append((first, last))
    return tuple(tuple(names[first : last + 1]) for first, last in groups)
