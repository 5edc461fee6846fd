from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from caref.statistics.unpaired import Moments, welch

groups = st.builds(Moments, st.floats(-100, 100), st.floats(0.01, 30), st.integers(2, 80))


@given(groups, groups)
def test_it_is_scipys(first: Moments, second: Moments) -> None:
    theirs = stats.ttest_ind_from_stats(
        second.mean, second.std, second.n, first.mean, first.std, first.n, equal_var=False
    )
    ours = welch(first, second)
    assert ours is not None
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-9, abs=1e-300)
    assert ours.difference == second.mean - first.mean
    assert (ours.low + ours.high) / 2 == pytest.approx(ours.difference, abs=1e-9)
    # The interval leaves 0 out exactly where the test rejects.
    if abs(ours.p_value - 0.05) > 1e-6:
        assert (ours.low > 0 or ours.high < 0) == (ours.p_value < 0.05)


def test_the_interval_is_scipys() -> None:
    generator = np.random.default_rng(1)
    a, b = generator.normal(0, 1, 12), generator.normal(1, 3, 30)
    theirs = stats.ttest_ind(b, a, equal_var=False).confidence_interval()
    ours = welch(*(Moments(x.mean(), x.std(ddof=1), x.size) for x in (a, b)))
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


def test_hedges_g_by_hand() -> None:
    # Pooled deviation 2, correction gamma(9) / (3 gamma(8.5)).
    found = welch(Moments(1.0, 2.0, 10), Moments(4.0, 2.0, 10))
    assert found is not None
    correction = math.gamma(9) / (3 * math.gamma(8.5))
    assert found.hedges_g.value == pytest.approx(1.5 * correction)


def test_without_any_deviation_there_is_no_test() -> None:
    assert welch(Moments(1.0, 0.0, 10), Moments(2.0, 0.0, 10)) is None
    assert welch(Moments(1.0, 0.0, 10), Moments(2.0, 0.5, 10)) is not None


@pytest.mark.parametrize(("std", "n"), [(-1.0, 10), (1.0, 1)])
def test_what_is_no_group(std: float, n: int) -> None:
    with pytest.raises(ValueError, match="at least 2 values"):
        Moments(0.0, std, n)
