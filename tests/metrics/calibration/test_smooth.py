"""The smooth calibration error, against its definition summed up directly, and against relplot."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from caref.metrics.calibration.smooth import smooth_error, smooth_errors

Array = NDArray[np.float64]
OUTCOMES = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 1.0])), min_size=1, max_size=40)


def error_at(f: Array, c: Array, width: float, cells: int = 4000) -> float:
    """The definition: Gaussians at every mirror image of a confidence, their sum integrated."""
    t = (np.arange(cells) + 0.5) / cells
    images = np.concatenate([2 * m + sign * f for m in range(-4, 5) for sign in (1, -1)])
    masses = np.tile((c - f) / f.size, 18)
    bells = np.exp(-0.5 * ((t[:, None] - images) / width) ** 2) / (width * np.sqrt(2 * np.pi))
    return float(np.abs(bells @ masses).mean())


def fixed_point(f: Array, c: Array) -> float:
    low, high = 1e-3, 1.2
    for _ in range(22):
        middle = (low + high) / 2
        low, high = (middle, high) if error_at(f, c, middle) > middle else (low, middle)
    return low


def sample(seed: int, n: int, gap: float) -> tuple[Array, Array]:
    generator = np.random.default_rng(seed)
    f = generator.uniform(0.4, 1.0, n)
    return f, (generator.random(n) < f - gap).astype(np.float64)


@pytest.mark.parametrize(("n", "gap"), [(20, 0.0), (60, 0.1), (60, 0.35)])
def test_it_is_where_the_error_equals_the_bandwidth(n: int, gap: float) -> None:
    f, c = sample(n, n, gap)
    error = smooth_error(f, c)
    assert error == pytest.approx(fixed_point(f, c), rel=1e-4)
    assert error_at(f, c, error) == pytest.approx(error, rel=1e-4)


@pytest.mark.parametrize("gap", [0.0, 0.05, 0.12])
def test_relplot_agrees_to_its_own_grid(gap: float) -> None:
    """It looks for the bandwidth in steps of 1/1024, and integrates over 200 points."""
    relplot = pytest.importorskip("relplot")
    for seed in range(3):
        f, c = sample(seed, 350, gap)
        assert smooth_error(f, c) == pytest.approx(relplot.smECE(f, c), abs=1 / 1024)


def test_relplots_fault_is_a_kernel_that_ends_at_a_half() -> None:
    """Wrong at both ends, one too high and one too low: at this bandwidth they offset each other in part."""
    relplot = pytest.importorskip("relplot")
    f, c = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    assert smooth_error(f, c) == pytest.approx(fixed_point(f, c), rel=1e-4)
    assert smooth_error(f, c) == pytest.approx(0.456, abs=0.001)
    assert relplot.smECE(f, c) > 0.99


@pytest.mark.parametrize(
    ("confidences", "correct", "expected"),
    [
        ([1.0], [1], 0.0),
        ([1.0], [0], 1.0),
        ([0.0, 1.0], [0, 1], 0.0),
        # Equal confidences are one point: its gap, however wide the kernel.
        ([0.75] * 4, [1, 1, 1, 0], 0.0),
        ([0.8] * 10, [1] * 6 + [0] * 4, 0.2),
    ],
)
def test_closed_forms(confidences: list[float], correct: list[int], expected: float) -> None:
    assert smooth_error(confidences, correct) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=60, deadline=None)
@example([(1e-5, 0.0)], random.Random(0))  # a bandwidth far below the finest grid's
@given(OUTCOMES, st.randoms(use_true_random=False))
def test_its_range_and_its_order(pairs: list[tuple[float, float]], shuffled: Any) -> None:
    f, c = (np.array(each) for each in zip(*pairs, strict=True))
    error = smooth_error(f, c)
    assert abs((c - f).mean()) - 1e-12 <= error <= np.abs(c - f).mean() + 1e-12
    f, c = (np.array(each) for each in zip(*shuffled.sample(pairs, len(pairs)), strict=True))
    assert smooth_error(f, c) == pytest.approx(error, abs=1e-8)


def test_many_at_once_are_as_one_after_the_other() -> None:
    f, c = sample(0, 350, 0.02)
    outcomes = (np.random.default_rng(1).random((20, f.size)) < f).astype(np.float64)
    together = smooth_errors(f, (np.concatenate([outcomes, c[None]]) - f) / f.size)
    alone = [smooth_error(f, each) for each in [*outcomes, c]]
    assert together == pytest.approx(alone, rel=2e-3)


def test_a_large_calibrated_sample_has_a_small_error() -> None:
    f, c = sample(0, 5_000, 0.0)
    assert 0.005 < smooth_error(f, c) < 0.03
