from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from caref.human.association import (
    ALL,
    MEAN_OF_SYSTEMS,
    MEAN_OF_TASKS,
    Scopes,
    auc,
    kendall,
    spearman,
    varies,
)

Numbers = st.lists(st.integers(0, 6).map(float), min_size=2, max_size=20)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=2, max_size=20))
def test_correlations_are_scipys(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, dtype=float).T
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert spearman(first, second) is kendall(first, second) is None
        return
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)
    concordant = sum(np.sign(a - c) * np.sign(b - d) for a, b in pairs for c, d in pairs) / 2
    untied = [sum(x != y for x in side for y in side) / 2 for side in (first, second)]
    assert kendall(first, second) == pytest.approx(concordant / (untied[0] * untied[1]) ** 0.5)


@given(Numbers, Numbers)
def test_auc_is_a_count_of_pairs(higher: list[float], lower: list[float]) -> None:
    wins = [(a > b) + (a == b) / 2 for a in higher for b in lower]
    assert auc(np.array(higher), np.array(lower)) == pytest.approx(sum(wins) / len(wins))


@pytest.mark.parametrize("of", [spearman, kendall])
def test_what_is_not_known_is_left_out(of: Callable[..., float | None]) -> None:
    some, all_of = np.array([1.0, np.nan, 3.0, 2.0]), np.array([1.0, 2.0, np.nan, 4.0])
    assert of(some, all_of) == pytest.approx(1.0)
    assert of(some, np.full(4, np.nan)) is None


def test_auc_without_a_side() -> None:
    assert auc(np.array([np.nan]), np.array([1.0])) is None
    assert auc(np.array([2.0, np.nan]), np.array([1.0])) == 1.0


def test_scopes_tell_a_difference_of_systems_from_one_of_explanations() -> None:
    """Within a system the metric runs against the rating, between systems with it."""
    scopes = Scopes(["esnli"] * 80 + ["comve"] * 80, (["base"] * 40 + ["large"] * 40) * 2)
    ratings = np.tile(np.concatenate([np.arange(40.0), 100 + np.arange(40.0)]), 2)
    scores = np.tile(np.concatenate([-np.arange(40.0), 100 - np.arange(40.0)]), 2)
    found = scopes.each(lambda places: spearman(scores[places], ratings[places]), np.arange(160))
    assert found["esnli/base"] == found["comve/large"] == found[MEAN_OF_SYSTEMS] == pytest.approx(-1.0)
    assert found["esnli"] == found["comve"] == found[MEAN_OF_TASKS]
    assert found["esnli"] is not None and found["esnli"] > 0.4
    assert found[ALL] is not None and found[ALL] > 0.4
    assert list(scopes.of_system) == ["esnli/base", "esnli/large", "comve/base", "comve/large"]


def test_a_mean_of_scopes_is_undefined_where_one_is() -> None:
    scopes = Scopes(["esnli", "esnli", "comve", "comve"], ["base"] * 4)
    scores = np.array([1.0, 2.0, 3.0, 3.0])
    found = scopes.each(lambda places: spearman(scores[places], np.arange(4.0)[places]), np.arange(4))
    assert found["comve"] is None
    assert found[MEAN_OF_TASKS] is found[MEAN_OF_SYSTEMS] is None
    assert found["esnli"] == found["esnli/base"] == pytest.approx(1.0)


def test_counts_are_of_what_is_known() -> None:
    scopes = Scopes(["esnli", "esnli", "comve"], ["base", "large", "base"])
    assert scopes.counts(np.array([True, False, True])) == {
        ALL: 2, MEAN_OF_TASKS: 2, MEAN_OF_SYSTEMS: 2,
        "esnli": 1, "comve": 1, "esnli/base": 1, "esnli/large": 0, "comve/base": 1,
    }  # fmt: skip


def test_a_handful_of_odd_ones_is_no_variation() -> None:
    numbers = np.zeros(100)
    numbers[:9] = 1
    assert not varies(numbers)
    numbers[9] = 2
    assert varies(numbers)
    assert not varies(np.arange(29.0))
    assert not varies(np.concatenate([np.arange(29.0), np.full(50, np.nan)]))
    assert not varies(np.full(50, np.nan))
