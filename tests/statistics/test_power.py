from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from caref.statistics.effect import deviation
from caref.statistics.number import Number
from caref.statistics.power import power_of, splits_needed


@pytest.mark.parametrize(("effect", "splits"), [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10)])
def test_the_textbook_sizes_of_a_paired_t_test(effect: float, splits: int) -> None:
    """Power 0.8 at the two-sided level 0.05, as any table of the paired t-test has it."""
    assert splits_needed(effect, Number(1.0)).value == splits
    assert splits_needed(-effect * 7, Number(7.0)).value == splits


def test_the_formula_is_what_happens() -> None:
    generator = np.random.default_rng(1)
    splits = splits_needed(1.0, Number(1.7)).value
    assert splits is not None
    drawn = generator.normal(1.0, 1.7, size=(6000, int(splits)))
    found = np.mean(stats.ttest_1samp(drawn, 0.0, axis=1).pvalue < 0.05)
    assert found == pytest.approx(power_of(int(splits), 1.0, 1.7), abs=3 * (0.8 * 0.2 / 6000) ** 0.5)
    null = np.mean(stats.ttest_1samp(drawn - 1.0, 0.0, axis=1).pvalue < 0.05)
    assert null == pytest.approx(power_of(int(splits), 0.0, 1.7), abs=0.01)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.1, 20.0), st.floats(0.01, 20.0))
def test_it_is_the_smallest_number_that_suffices(difference: float, spread: float) -> None:
    found = splits_needed(difference, Number(spread)).value
    assert found is not None
    assert found == int(found) >= 2
    assert power_of(int(found), difference, spread) >= 0.8
    if found > 2:
        assert power_of(int(found) - 1, difference, spread) < 0.8


@pytest.mark.parametrize(("splits", "effect"), [(2, 0.3), (2, 8.0), (10, 1.0), (61, 2.0), (200, 0.01)])
def test_it_is_the_integral_over_the_deviation(splits: int, effect: float) -> None:
    """Given the sample's deviation, the mean is normal; over deviations it is a chi distribution."""
    degrees, shift = splits - 1, effect * splits**0.5
    critical = stats.t.ppf(0.975, degrees)

    def given_deviation(s: float) -> float:
        tails = stats.norm.sf(critical * s - shift) + stats.norm.cdf(-critical * s - shift)
        return tails * stats.chi.pdf(s * degrees**0.5, degrees) * degrees**0.5

    ends = stats.chi.ppf([1e-13, 1 - 1e-13], degrees) / degrees**0.5
    assert power_of(splits, effect, 1.0) == pytest.approx(
        quad(given_deviation, *ends, limit=500)[0], abs=1e-9
    )


def test_what_has_no_number_of_splits() -> None:
    assert splits_needed(1.0, deviation([1.0])).note == "one split"
    assert splits_needed(1.0, deviation([2.0, 2.0])).note == "the differences do not vary between splits"
    assert splits_needed(0.0, Number(1.0)).note == "no number of splits shows a difference of 0"
    assert splits_needed(1e-6, Number(1.0)).note == "more than 1,000,000 splits"


def test_an_obvious_difference_still_takes_two_splits() -> None:
    assert splits_needed(1000.0, Number(0.001)).value == 2


def test_what_is_no_design() -> None:
    for splits, spread in ((1, 1.0), (5, 0.0)):
        with pytest.raises(ValueError, match="at least 2 splits and a deviation above 0"):
            power_of(splits, 1.0, spread)
