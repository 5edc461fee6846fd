"""The null band: what a perfectly calibrated predictor shows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caref.metrics.calibration.binned import calibration_error
from caref.metrics.calibration.calibration_error import calibration_errors
from caref.metrics.calibration.null import null_calibration_errors, null_draws, null_values


def simulated(seed: int, right: Callable[[Any], Any], n: int = 350) -> dict[str, tuple[float, float]]:
    """Each error and its null's 95 % quantile, `right` giving the chance of being right."""
    generator = np.random.default_rng(seed)
    f = np.sort(generator.uniform(0.4, 1.0, n))
    c = (generator.random(n) < right(f)).astype(float)
    null = null_values(null_draws(f, lambda drawn: calibration_errors(f, drawn, 15), draws=200))
    errors = calibration_errors(f, c[None], 15)
    return {name: (float(error[0]), null[f"{name}_95"]) for name, error in errors.items()}


def test_perfectly_calibrated_predictions_lie_within_the_null_band() -> None:
    found = [simulated(seed, lambda f: f) for seed in range(1, 201)]
    for name in found[0]:
        inside = [error <= band for error, band in (each[name] for each in found)]
        # 0.95 with a standard error of 0.015, the quantile's own noise aside.
        assert 0.89 <= np.mean(inside) <= 0.995, name


def test_overconfident_predictions_lie_above_it() -> None:
    for seed in range(10):
        found = simulated(seed, lambda f: f - 0.2)
        del found["maximum_error"]  # one prediction alone in its bin decides it
        assert all(error > band for error, band in found.values()), found


@pytest.mark.parametrize(("n", "binned", "smooth"), [(50, 0.133, 0.080), (350, 0.051, 0.037)])
def test_what_perfect_calibration_shows_on_average(n: int, binned: float, smooth: float) -> None:
    """As measured elsewhere over 20 draws, with confidences uniform on 0.4 to 1 and 15 bins."""
    generator = np.random.default_rng(n)
    samples = [np.sort(generator.uniform(0.4, 1.0, n)) for _ in range(10)]
    drawn = [null_draws(f, lambda c, f=f: calibration_errors(f, c, 15), draws=100) for f in samples]
    # Means of 20 draws have a standard error of a twentieth of themselves.
    assert np.mean([each["calibration_error"].mean() for each in drawn]) == pytest.approx(binned, rel=0.12)
    assert np.mean([each["smooth_error"].mean() for each in drawn]) == pytest.approx(smooth, rel=0.15)


def test_what_the_null_is() -> None:
    assert null_calibration_errors([0.0, 1.0, 1.0]).tolist() == [0.0] * 1000
    single = null_calibration_errors([0.75], draws=4000)
    assert set(single.tolist()) == {0.25, 0.75}
    assert single.mean() == pytest.approx(2 * 0.75 * 0.25, abs=0.02)
    # n equal confidences: the mean distance of a binomial share from its mean.
    shares = [math.comb(20, k) * 0.7**k * 0.3 ** (20 - k) * abs(k / 20 - 0.7) for k in range(21)]
    assert null_calibration_errors([0.7] * 20, draws=4000).mean() == pytest.approx(sum(shares), rel=0.05)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_the_order_does_not_matter(confidences: list[float], random: Any) -> None:
    shuffled = random.sample(confidences, len(confidences))
    drawn, again = (null_calibration_errors(each, draws=5) for each in (confidences, shuffled))
    assert again.tolist() == drawn.tolist()


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    confidences = np.linspace(0.3, 1, 50)
    whole = null_calibration_errors(confidences, draws=33)
    monkeypatch.setattr("caref.metrics.calibration.null.BLOCK", 500)
    assert null_calibration_errors(confidences, draws=33).tolist() == whole.tolist()


def test_it_is_the_error_of_drawn_outcomes() -> None:
    f = np.linspace(0.1, 0.9, 20)
    generator = np.random.default_rng(0)
    by_hand = [calibration_error(f, (generator.random(20) < f).astype(float)) for _ in range(4)]
    assert null_calibration_errors(f, draws=4) == pytest.approx(by_hand)
