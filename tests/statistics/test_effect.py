from __future__ import annotations

import math

import numpy as np
import pytest

from caref.statistics.effect import CONSTANT, deviation, effect_size, hedges_correction
from caref.statistics.number import Number


def test_hand_worked() -> None:
    # Mean 2, deviation sqrt((1 + 0 + 1) / 2) = 1.
    assert effect_size([1.0, 2.0, 3.0]) == Number(2.0)
    assert effect_size([-1.0, -2.0, -3.0]) == Number(-2.0)
    assert deviation(np.array([0.0, 2.0])).value == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("same", [0.0, 0.1, -3.0])
def test_differences_that_do_not_vary_have_none(same: float) -> None:
    assert deviation([same] * 7) == effect_size([same] * 7) == Number(None, CONSTANT)


def test_rounding_is_no_variation() -> None:
    assert effect_size([0.1 + 0.2, 0.3, 0.3]).note == CONSTANT


def test_too_few() -> None:
    assert (deviation([]).note, effect_size([]).note, effect_size([1.0]).note) == (
        "no split",
        "no split",
        "one split",
    )


@pytest.mark.parametrize("degrees", [4, 20, 118])
def test_the_correction_is_close_to_its_usual_approximation(degrees: int) -> None:
    assert hedges_correction(degrees) == pytest.approx(1 - 3 / (4 * degrees - 1), abs=0.003)


def test_the_correction_frees_of_bias() -> None:
    """Two groups of four, one standard deviation apart: d is too large by about 15 %, g is not."""
    generator = np.random.default_rng(1)
    first, second = generator.normal(0, 1, (40_000, 4)), generator.normal(1, 1, (40_000, 4))
    pooled = np.sqrt((first.var(axis=1, ddof=1) + second.var(axis=1, ddof=1)) / 2)
    d = (second.mean(axis=1) - first.mean(axis=1)) / pooled
    assert d.mean() > 1.1
    assert d.mean() * hedges_correction(6) == pytest.approx(1.0, abs=0.02)


def test_a_number_is_finite_or_says_why_not() -> None:
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not finite"):
            Number(wrong)
    with pytest.raises(ValueError, match="needs a note"):
        Number(None)
