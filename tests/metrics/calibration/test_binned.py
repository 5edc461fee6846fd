"""Binned calibration errors, against closed forms, loops and torchmetrics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchmetrics.functional.classification import binary_calibration_error

from caref.errors import CarefError
from caref.metrics.calibration.binned import (
    bin_sums,
    calibration_error,
    debiased_error,
    debiased_gap,
    equal_mass_error,
    equal_mass_places,
    equal_width_places,
    maximum_error,
    mean_gap,
    reliability_bins,
)

UNIT = st.floats(0, 1)
OUTCOMES = st.lists(st.tuples(UNIT, st.sampled_from([0.0, 1.0])), min_size=1, max_size=60)
ERRORS = (calibration_error, equal_mass_error, maximum_error, debiased_error)


def by_loops(pairs: list[tuple[float, float]], bins: int) -> float:
    """The definition, one bin after the other."""
    total = 0.0
    for place in range(bins):
        low, high = place / bins, (place + 1) / bins
        last = place == bins - 1
        inside = [(f, c) for f, c in pairs if low <= f and (f < high or (last and f <= 1))]
        if inside:
            accuracy = sum(c for _, c in inside) / len(inside)
            confidence = sum(f for f, _ in inside) / len(inside)
            total += len(inside) / len(pairs) * abs(accuracy - confidence)
    return total


@pytest.mark.parametrize(
    ("confidences", "correct", "bins", "expected"),
    [
        ([1.0], [1.0], 15, 0.0),
        ([1.0], [0.0], 15, 1.0),
        ([0.0], [0.0], 15, 0.0),
        ([0.0, 0.0], [1.0, 0.0], 15, 0.5),
        ([0.5] * 4, [1.0, 1.0, 0.0, 0.0], 15, 0.0),
        ([0.8] * 10, [1.0] * 6 + [0.0] * 4, 15, 0.2),
        # On an edge a confidence belongs to the bin above: alone there, its gap is not offset.
        ([0.49, 0.5], [1.0, 0.0], 2, (0.51 + 0.5) / 2),
        ([0.5, 0.51], [1.0, 0.0], 2, 0.005),
        # The last bin holds 1 too.
        ([0.9, 1.0], [1.0, 0.0], 2, 0.45),
        ([0.2, 0.9], [1.0, 0.0], 1, 0.05),
    ],
)
def test_closed_forms(confidences: list[float], correct: list[float], bins: int, expected: float) -> None:
    assert calibration_error(confidences, correct, bins=bins) == pytest.approx(expected, abs=1e-12)


def test_closed_forms_of_the_other_errors() -> None:
    f, c = [1.0, 1.0, 0.75, 0.75], [1, 0, 1, 1]
    assert maximum_error(f, c) == pytest.approx(0.5)
    assert equal_mass_error(f, c, bins=2) == pytest.approx((2 * 0.5 + 2 * 0.25) / 4)
    assert equal_mass_error(f, c, bins=1) == pytest.approx(abs(3 - 3.5) / 4)
    # A bin of two, right once: (1/2 - 1)^2 - (1/4) / 1 = 0; the other: (1 - 3/4)^2 - 0.
    assert debiased_error(f, c, bins=2) == pytest.approx(math.sqrt((0 + 0.0625) / 2))
    # Squared gaps below what chance adds: clamped at 0.
    assert debiased_error([0.5] * 4, [1, 1, 0, 0]) == 0
    for error in ERRORS:
        assert error([1.0] * 3 + [0.0] * 2, [1] * 3 + [0] * 2) == 0
        assert error([1.0] * 3 + [0.0] * 2, [0] * 3 + [1] * 2) == 1


def test_an_error_of_pairs_needs_a_pair() -> None:
    assert debiased_error([0.9], [1]) is None
    assert debiased_error([0.1, 0.5, 0.9], [0, 1, 1], bins=3) is None
    # The bin of one adds nothing: only the bin of two counts, for 2 of 3.
    assert debiased_error([0.5, 0.5, 0.9], [1, 1, 0], bins=2) == pytest.approx(math.sqrt(2 / 3 * 0.25))


@given(OUTCOMES, st.integers(1, 30))
def test_the_error_is_that_of_loops_and_within_its_range(pairs: list[tuple[float, float]], bins: int) -> None:
    f, c = zip(*pairs, strict=True)
    error = calibration_error(f, c, bins=bins)
    assert error == pytest.approx(by_loops(pairs, bins), abs=1e-12)
    assert error <= maximum_error(f, c, bins=bins) + 1e-12
    assert all(each(f, c, bins=bins) is None or 0 <= each(f, c, bins=bins) <= 1 for each in ERRORS)


@pytest.mark.parametrize("bins", [1, 2, 7, 15, 22, 49, 100])
def test_every_edge_belongs_to_the_bin_above(bins: int) -> None:
    for place in range(bins):
        edge, above, below = place / bins, (place + 0.5) / bins, math.nextafter(place / bins, 0.0)
        # Of opposite outcomes: in one bin the gaps offset each other, in two they add up.
        together = calibration_error([edge, above], [1.0, 0.0], bins=bins)
        assert together == pytest.approx(abs(1 - edge - above) / 2, abs=1e-12)
        if place:
            apart = calibration_error([edge, below], [1.0, 0.0], bins=bins)
            assert apart == pytest.approx((1 - edge + below) / 2, abs=1e-12)


@given(OUTCOMES, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(pairs: list[tuple[float, float]], random: Any) -> None:
    shuffled = random.sample(pairs, len(pairs))
    for error in ERRORS:
        first, second = (error(*zip(*each, strict=True)) for each in (pairs, shuffled))
        assert second == pytest.approx(first, abs=1e-7)  # the square root of a difference of 1e-16


@pytest.mark.parametrize(("norm", "error"), [("l1", calibration_error), ("max", maximum_error)])
@pytest.mark.parametrize("bins", [5, 10, 15])
def test_torchmetrics_agrees_away_from_its_fault(norm: Any, error: Any, bins: int) -> None:
    generator = np.random.default_rng(bins)
    f = generator.uniform(0.0, 0.999, 400)
    c = (generator.random(400) < f**2).astype(int)
    theirs = binary_calibration_error(torch.tensor(f), torch.tensor(c), n_bins=bins, norm=norm)
    assert error(f, c, bins=bins) == pytest.approx(float(theirs), abs=1e-12)


def test_its_fault_is_a_bin_for_1_alone() -> None:
    f, c = [0.95, 1.0], [1, 0]
    theirs = binary_calibration_error(torch.tensor(f, dtype=torch.float64), torch.tensor(c), n_bins=15)
    assert float(theirs) == pytest.approx((0.05 + 1) / 2)
    assert calibration_error(f, c) == pytest.approx(abs(0.05 - 1) / 2)


@given(st.lists(UNIT, min_size=1, max_size=60), st.integers(1, 20))
def test_bins_of_equal_mass(confidences: list[float], bins: int) -> None:
    f = np.array(confidences)
    places = equal_mass_places(f, bins)
    assert places.min() == 0
    assert places.max() < bins
    order = np.argsort(f, kind="stable")
    assert (np.diff(places[order]) >= 0).all()
    assert all(len(set(places[f == value])) == 1 for value in f)
    if len(set(confidences)) == len(confidences):
        assert {*np.bincount(places, minlength=bins)} <= {f.size // bins, -(-f.size // bins)}


def test_many_draws_are_as_one_after_the_other() -> None:
    generator = np.random.default_rng(0)
    f = np.round(generator.random(40), 1)
    c = (generator.random(40) < f).astype(float)
    weights = generator.multinomial(40, np.full(40, 1 / 40), size=7).astype(float)
    places = equal_mass_places(f, 6, weights)
    together = bin_sums(places, f, c, 6, weights)
    for row, drawn in enumerate(weights.astype(int)):
        f_drawn, c_drawn = np.repeat(f, drawn), np.repeat(c, drawn)
        assert mean_gap(together)[row] == pytest.approx(equal_mass_error(f_drawn, c_drawn, bins=6))
        assert debiased_gap(together)[row] == pytest.approx(
            debiased_error(f_drawn, c_drawn, bins=6), abs=1e-7
        )


def test_debiasing_takes_the_bias_off() -> None:
    """The squared error of a calibrated predictor is 0 on average only after debiasing."""
    generator = np.random.default_rng(0)
    f = np.repeat([0.6, 0.7, 0.8, 0.9], 25)
    outcomes = (generator.random((4000, f.size)) < f).astype(float)
    sums = bin_sums(equal_mass_places(f, 4), f, outcomes, 4)
    right, confidence = sums.right / sums.count, sums.confidence / sums.count
    plain = ((right - confidence) ** 2).mean(axis=1)
    debiased = plain - (right * (1 - right) / (sums.count - 1)).mean(axis=1)
    assert plain.mean() > 0.005
    assert abs(debiased.mean()) < 0.0003  # 3 standard errors
    assert debiased_gap(sums) == pytest.approx(np.sqrt(np.maximum(debiased, 0)), abs=1e-7)


def test_the_bins_of_a_reliability_diagram() -> None:
    f, c = [0.1, 0.15, 0.6, 1.0], [0, 1, 1, 1]
    low, middle, high = reliability_bins(f, c, bins=5)
    assert (low.place, low.low, low.high, low.count) == (0, 0, 0.2, 2)
    assert (low.confidence, low.right) == pytest.approx((0.125, 0.5))
    assert (middle.place, middle.confidence, high.place, high.high) == (3, 0.6, 4, 1.0)
    first, second = reliability_bins(f, c, bins=2, equal="mass")
    assert [(each.place, each.low, each.high, each.count) for each in (first, second)] == [
        (0, 0.1, 0.15, 2),
        (1, 0.6, 1.0, 2),
    ]


@given(OUTCOMES, st.sampled_from(["width", "mass"]))
def test_the_error_is_that_of_the_diagram(pairs: list[tuple[float, float]], equal: Any) -> None:
    f, c = zip(*pairs, strict=True)
    bins = reliability_bins(f, c, equal=equal)
    error = calibration_error if equal == "width" else equal_mass_error
    shown = sum(each.count * abs(each.right - each.confidence) for each in bins) / len(pairs)
    assert error(f, c) == pytest.approx(shown, abs=1e-12)
    assert sum(each.count for each in bins) == len(pairs)


@pytest.mark.parametrize(
    ("confidences", "correct", "told"),
    [
        ([math.nan], [1], r"confidences must lie within \[0, 1\], got nan at place 0"),
        ([0.5, 1.1], [1, 0], r"confidences must lie within \[0, 1\], got 1.1 at place 1"),
        ([0.5], [0.5], "outcomes must be 1 or 0, got 0.5 at place 0"),
        ([0.5], [math.nan], "outcomes must be 1 or 0, got nan at place 0"),
        ([0.5], [1, 0], r"two lists of one length, got shapes \(1,\) and \(2,\)"),
        ([], [], "there must be at least one confidence, got none"),
    ],
)
def test_what_is_no_confidence_is_refused(confidences: list[float], correct: list[float], told: str) -> None:
    for error in ERRORS:
        with pytest.raises(CarefError, match=told):
            error(confidences, correct)


def test_the_places_of_equal_width_are_within_the_bins() -> None:
    assert equal_width_places(np.array([0.0, 0.499, 0.5, 1.0]), 2).tolist() == [0, 0, 1, 1]
