from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caref.statistics.decomposition import NO_RIGHT, decompose, decomposition_intervals

accuracies, shares = st.floats(0.01, 100), st.floats(0, 1)


@given(accuracies, shares, accuracies, shares)
def test_the_parts_are_the_difference(a1: float, f1: float, a2: float, f2: float) -> None:
    found = decompose(a1, a1 * f1, a2, a2 * f2)
    accuracy, explanation = found.accuracy_part.value, found.explanation_part.value
    assert accuracy is not None and explanation is not None
    assert accuracy + explanation == pytest.approx(found.difference, abs=1e-12)
    assert found.difference == a2 * f2 - a1 * f1
    back = decompose(a2, a2 * f2, a1, a1 * f1)
    assert (back.accuracy_part.value, back.explanation_part.value) == pytest.approx(
        (-accuracy, -explanation), abs=1e-12
    )


def test_one_factor_alone() -> None:
    more_right = decompose(50.0, 45.0, 60.0, 54.0)
    assert more_right.accuracy_part.value == pytest.approx(9.0)
    assert more_right.explanation_part.value == pytest.approx(0.0, abs=1e-12)
    better_said = decompose(50.0, 45.0, 50.0, 40.0)
    assert better_said.accuracy_part.value == pytest.approx(0.0, abs=1e-12)
    assert better_said.explanation_part.value == pytest.approx(-5.0)


@pytest.mark.parametrize(("first", "second"), [((0, 0), (50, 45)), ((50, 45), (0, 0)), ((0, 0), (0, 0))])
def test_without_a_right_answer_there_are_no_parts(
    first: tuple[float, float], second: tuple[float, float]
) -> None:
    found = decompose(*first, *second)
    assert found.difference == second[1] - first[1]
    assert found.accuracy_part.value is found.explanation_part.value is None
    assert found.accuracy_part.note == NO_RIGHT


def planted(
    generator: np.random.Generator, right: tuple[float, float], f1: tuple[float, float]
) -> np.ndarray:
    """A split of 80 examples, answered right with these chances, explained this well."""
    c1, c2 = (100.0 * (generator.random(80) < chance) for chance in right)
    b1, b2 = (
        np.where(c > 0, mean + 3 * generator.normal(size=80), 0.0) for c, mean in ((c1, f1[0]), (c2, f1[1]))
    )
    return np.stack([c1, b1, c2, b2], axis=1)


def test_the_intervals_say_which_part_is_real() -> None:
    generator = np.random.default_rng(1)
    splits = [planted(generator, (0.5, 0.7), (90.0, 90.0)) for _ in range(12)]
    accuracy, explanation = decomposition_intervals(splits)
    assert accuracy is not None and explanation is not None
    # 18, give or take two deviations of sqrt(2 * (0.25 + 0.21) / 960) * 90 = 2.8 and the sample's own 2.0.
    assert 8 < accuracy[0] < 18 < accuracy[1] < 28
    assert explanation[0] < 0 < explanation[1]
    splits = [planted(generator, (0.6, 0.6), (85.0, 90.0)) for _ in range(12)]
    accuracy, explanation = decomposition_intervals(splits)
    assert accuracy is not None and explanation is not None
    assert accuracy[0] < 0 < accuracy[1]
    assert 2 < explanation[0] < 3 < explanation[1] < 4


def test_too_little_has_no_interval() -> None:
    assert decomposition_intervals([np.ones((1, 4))]) == (None, None)
    never_right = np.array([[0.0, 0.0, 100.0, 90.0]] * 20)
    assert decomposition_intervals([never_right]) == (None, None)
