from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caref.statistics.multiple import holm


def test_the_example_of_demsar() -> None:
    """Demsar, 2006, section 3.2.3: 0.016 and 0.019 against a control survive, 0.607 does not."""
    adjusted = holm([0.016, 0.607, 0.019])
    # 3 * 0.016; then 2 * 0.019 = 0.038, which must not be less than the one before; then 0.607.
    assert adjusted == pytest.approx([0.048, 0.607, 0.048])


def test_hand_worked() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


def test_a_test_that_was_not_done_does_not_count() -> None:
    assert holm([None, 0.02, None, 0.03]) == [None, 0.04, None, 0.04]
    assert holm([None]) == [None]


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_value(p: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5, p])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_it_rejects_what_the_step_down_test_rejects(p_values: list[float], level: float) -> None:
    order = np.argsort(p_values, kind="stable")
    rejected = [False] * len(p_values)
    for rank, place in enumerate(order):
        # The same product as in the adjusted value: dividing the level instead may round the other way.
        if min(1.0, (len(p_values) - rank) * p_values[place]) >= level:
            break
        rejected[place] = True
    adjusted = holm(p_values)
    assert [p is not None and p < level for p in adjusted] == rejected
    assert all(p is not None and given <= p <= 1 for p, given in zip(adjusted, p_values, strict=True))


def test_of_many_null_families_few_reject_anything() -> None:
    generator = np.random.default_rng(1)
    families = generator.random((2000, 6))
    any_rejected = np.mean([min(p for p in holm(list(each)) if p is not None) < 0.05 for each in families])
    assert any_rejected <= 0.05 + 3 * (0.05 * 0.95 / 2000) ** 0.5
