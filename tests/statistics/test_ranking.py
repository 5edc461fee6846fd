from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from caref.errors import CarefError
from caref.statistics.ranking import Ranking, nemenyi_critical_value, rank


def values(table: list[list[float]]) -> dict[str, list[float]]:
    """Settings a, b, c ... from blocks as rows."""
    return {name: list(column) for name, column in zip("abcdefghij", zip(*table, strict=True), strict=False)}


@pytest.mark.parametrize(
    ("settings", "critical"),
    [
        (2, 1.960),
        (3, 2.343),
        (4, 2.569),
        (5, 2.728),
        (6, 2.850),
        (7, 2.949),
        (8, 3.031),
        (9, 3.102),
        (10, 3.164),
    ],
)
def test_the_critical_values_of_demsar(settings: int, critical: float) -> None:
    """Demsar, 2006, table 5 a, level 0.05; its last digit is rounded down or up."""
    assert nemenyi_critical_value(settings) == pytest.approx(critical, abs=0.0011)


def test_the_critical_difference_of_demsars_example() -> None:
    """Four classifiers on 14 data sets: 1.25."""
    found = rank(values([[1.0, 2.0, 3.0, 4.0]] * 14), higher_is_better=True)
    assert found.critical_difference.value == pytest.approx(1.25, abs=0.005)


def test_friedmans_test_is_scipys_and_by_hand() -> None:
    table = np.random.default_rng(1).normal([0.0, 0.4, 0.8, 0.0], size=(9, 4))
    found = rank(values(table.tolist()), higher_is_better=True)
    assert found.p_value.value == pytest.approx(stats.friedmanchisquare(*table.T).pvalue)
    ranks = np.array(list(found.mean_ranks.values()))
    statistic = 12 * 9 / (4 * 5) * ((ranks**2).sum() - 4 * 25 / 4)
    assert found.p_value.value == pytest.approx(stats.chi2.sf(statistic, 3))


def test_equal_values_share_ranks() -> None:
    found = rank(values([[3.0, 3.0, 1.0], [2.0, 1.0, 1.0]]), higher_is_better=True)
    assert found.mean_ranks == {"a": 1.25, "b": 2.0, "c": 2.75}
    assert sum(found.mean_ranks.values()) == 6


def test_the_smallest_may_be_the_best() -> None:
    table = values([[1.0, 2.0, 3.0]] * 3)
    assert list(rank(table, higher_is_better=False).mean_ranks) == ["a", "b", "c"]
    assert list(rank(table, higher_is_better=True).mean_ranks) == ["c", "b", "a"]


def of_ranks(**mean_ranks: float) -> Ranking:
    """A ranking with a critical difference of 1 over blocks enough for Friedman's test to reject."""
    from caref.statistics import ranking
    from caref.statistics.number import Number

    p, critical = Number(0.001), Number(1.0)
    return Ranking(mean_ranks, 20, p, critical, ranking._groups(mean_ranks, p, critical))


def test_groups_are_the_largest_that_cannot_be_told_apart() -> None:
    assert of_ranks(a=1.0, b=1.5, c=2.2, d=4.0).groups == (("a", "b"), ("b", "c"), ("d",))
    assert of_ranks(a=1.0, b=1.5, c=1.9).groups == (("a", "b", "c"),)
    # A difference of exactly the critical one is a difference.
    assert of_ranks(a=1.0, b=2.0).groups == (("a",), ("b",))


def test_where_friedmans_test_does_not_reject_all_are_one_group() -> None:
    table = values([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [2.0, 3.0, 1.0], [1.0, 3.0, 2.0]])
    found = rank(table, higher_is_better=True)
    assert found.p_value.value is not None and found.p_value.value > 0.05
    assert [set(group) for group in found.groups] == [{"a", "b", "c"}]


def test_friedmans_test_is_asked_before_nemenyis() -> None:
    """Two settings whose ranks are far enough apart, among six that Friedman's test does not tell apart."""
    table = [[1.0, 6, 3, 2, 4, 5], [1, 6, 3, 4, 2, 5], [3, 6, 5, 1, 4, 2], [1, 4, 5, 6, 3, 2]]
    found = rank(values(table), higher_is_better=True)
    ranks = list(found.mean_ranks.values())
    assert found.p_value.value is not None and found.critical_difference.value is not None
    assert ranks[-1] - ranks[0] > found.critical_difference.value
    assert found.p_value.value > 0.05
    assert len(found.groups) == 1


def test_a_planted_order_is_found() -> None:
    table = np.random.default_rng(2).normal([0.0, 0.0, 3.0, 6.0], size=(60, 4))
    found = rank(values(table.tolist()), higher_is_better=True)
    assert [set(group) for group in found.groups] == [{"d"}, {"c"}, {"a", "b"}]


def test_equal_settings_are_told_apart_about_five_times_in_a_hundred() -> None:
    generator = np.random.default_rng(3)
    apart = [
        len(rank(values(generator.normal(size=(15, 4)).tolist()), higher_is_better=True).groups) > 1
        for _ in range(200)
    ]
    assert np.mean(apart) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize(
    ("table", "note"),
    [
        ([[1.0, 2.0], [1.0, 2.0]], "Friedman's test needs at least three settings"),
        ([[1.0, 2.0, 3.0]], "one split"),
        ([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]], "all settings are equal in every split"),
    ],
)
def test_what_has_no_test(table: list[list[float]], note: str) -> None:
    found = rank(values(table), higher_is_better=True)
    assert (found.p_value.value, found.p_value.note) == (None, note)
    assert len(found.groups) == 1


@pytest.mark.parametrize("given", [{}, {"a": [1.0]}, {"a": [], "b": []}, {"a": [1.0], "b": [1.0, 2.0]}])
def test_what_cannot_be_ranked(given: dict[str, list[float]]) -> None:
    with pytest.raises(CarefError, match="at least two settings with a value for each of the same blocks"):
        rank(given, higher_is_better=True)
