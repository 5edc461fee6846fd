from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caref.statistics.sign_flip import exact_p_value, sampled_p_value, split_test


@given(st.lists(st.integers(-6, 6), min_size=6, max_size=9))
def test_the_exact_test_is_that_of_all_sign_patterns(differences: list[int]) -> None:
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((-1, 1), repeat=len(differences))
    ]
    by_hand = sum(each >= abs(sum(differences)) for each in sums) / len(sums)
    assert split_test([d / 10 for d in differences]).value == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("splits", [6, 9, 16])
def test_all_of_one_sign_has_the_smallest_p(splits: int) -> None:
    assert split_test(np.arange(1, splits + 1)).value == 2 / 2**splits
    assert split_test(-np.arange(1.0, splits + 1)).value == 2 / 2**splits


@pytest.mark.parametrize(
    ("splits", "note"),
    [
        (0, "no split"),
        (1, "one split"),
        (3, "with 3 splits p is never below 0.25; 6 are needed"),
        (5, "with 5 splits p is never below 0.0625; 6 are needed"),
    ],
)
def test_too_few_splits_have_no_p(splits: int, note: str) -> None:
    found = split_test([1.0] * splits)
    assert (found.value, found.note) == (None, note)


def test_no_difference_at_all() -> None:
    assert split_test([0.0] * 8).value == 1.0
    assert split_test([0.0] * 30).value == 1.0


def test_drawn_signs_agree_with_all_signs() -> None:
    shares = np.random.default_rng(1).normal(0.1, 1.0, size=14)
    exact = exact_p_value(shares)
    assert 0.05 < exact < 0.95
    assert sampled_p_value(shares, flips=20_000) == pytest.approx(exact, abs=0.015)


def test_many_draws_in_pieces_are_the_same_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from caref.statistics import sign_flip

    shares = np.random.default_rng(2).normal(size=50)
    whole = sampled_p_value(shares, flips=1000)
    monkeypatch.setattr(sign_flip, "_AT_ONCE", 50 * 7)
    assert sampled_p_value(shares, flips=1000) == whole


def test_the_level_is_kept_and_a_difference_is_found() -> None:
    generator = np.random.default_rng(3)
    null = [split_test(generator.normal(0, 1, size=10)).value for _ in range(400)]
    planted = [split_test(generator.normal(1, 1, size=10)).value for _ in range(100)]
    rejected = np.mean([p <= 0.05 for p in null if p is not None])
    assert rejected == pytest.approx(0.05, abs=3 * (0.05 * 0.95 / 400) ** 0.5)
    assert np.mean([p <= 0.05 for p in planted if p is not None]) > 0.7
