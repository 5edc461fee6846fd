from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caref.human.agreement import (
    agreement,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_agreement,
    randolph_kappa,
    rating_counts,
)

FLEISS = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
)
"""The worked table of many textbooks: 10 subjects, 14 raters, 5 values; P 0.378, by chance 0.213."""

MISSING = (
    (0, 1, 2, 2, 1, 0, 3, 0, 1, None, None, None),
    (0, 1, 2, 2, 1, 1, 3, 0, 1, 4, None, 2),
    (None, 2, 2, 2, 1, 2, 3, 1, 1, 4, 0, None),
    (0, 1, 2, 2, 1, 3, 3, 0, 1, 4, 0, None),
)
"""Krippendorff's example E (2011): four observers, twelve units, some of them unrated."""

Rated = st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=12)


def test_fleiss_worked_table() -> None:
    assert pairwise_agreement(FLEISS) == pytest.approx(0.378, abs=5e-4)
    assert fleiss_kappa(FLEISS) == pytest.approx(0.210, abs=5e-4)


def test_krippendorffs_example_with_missing_values() -> None:
    counts = rating_counts(list(zip(*MISSING, strict=True)), 5)
    assert krippendorff_alpha(counts, "nominal") == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(counts, "ordinal") == pytest.approx(0.815, abs=5e-4)


def test_the_chance_that_a_kappa_is_corrected_for_decides() -> None:
    """94 of 100 questions are unanimous, 2 % of the ratings are the other value."""
    counts = np.array([[0, 3]] * 94 + [[1, 2]] * 6)
    assert pairwise_agreement(counts) == pytest.approx(0.96)
    assert randolph_kappa(counts) == pytest.approx(0.92)
    assert fleiss_kappa(counts) == pytest.approx((0.96 - 0.9608) / 0.0392)


def test_agreement_by_hand() -> None:
    # Merged: 3 yes; 2 no, 1 yes; 3 no.
    result = agreement([(3, 2, 3), (0, 1, 2), (0, 0, 1)])
    assert result.values["unanimous"] == 2
    assert result.values["randolph_kappa"] == pytest.approx((7 / 9 - 0.5) / 0.5)
    assert result.values["fleiss_kappa"] == pytest.approx((7 / 9 - 41 / 81) / (40 / 81))
    assert result.values["pairwise_agreement"] == pytest.approx((1 / 3 + 0 + 1 / 3) / 3)
    assert result.values["n"] == 3


def test_all_equal_ratings_leave_nothing_to_correct_for_chance() -> None:
    result = agreement([(3, 3, 3)] * 4)
    assert result.values["randolph_kappa"] == result.values["pairwise_agreement"] == 1
    assert result.values["unanimous"] == 4
    for name in ("fleiss_kappa", "alpha_ordinal", "alpha_nominal"):
        assert result.values[name] is None
        assert result.notes[name] == "all ratings are equal: by chance they would be too"


def test_without_questions_or_pairs() -> None:
    nothing = agreement([])
    assert nothing.values["n"] == nothing.values["unanimous"] == 0
    assert set(nothing.notes) == {
        "randolph_kappa", "fleiss_kappa", "pairwise_agreement", "alpha_ordinal", "alpha_nominal"
    }  # fmt: skip
    alone = agreement([(3,), (0,)])
    assert alone.values["randolph_kappa"] is alone.values["alpha_ordinal"] is None
    assert alone.notes["alpha_ordinal"] == "no question has two ratings"


def test_an_unknown_rating() -> None:
    with pytest.raises(ValueError, match=r"ratings must be within 0..3, got 4"):
        rating_counts([(4,)], 4)
    with pytest.raises(ValueError, match="needs as many ratings of each question"):
        fleiss_kappa(np.array([[0, 3], [1, 1]]))


def test_the_intervals_hold_the_values_and_draw_questions_of_one_owner_together() -> None:
    generator = np.random.default_rng(0)
    ratings = [tuple(row) for row in generator.integers(0, 4, size=(40, 3)).tolist()]
    alone, copied = agreement(ratings), agreement(ratings * 4, [str(n) for n in range(40)] * 4)
    for name, (low, high) in alone.intervals.items():
        value = alone.values[name]
        assert value is not None and low <= value <= high
        again = copied.intervals[name]
        # Alpha corrects for the number of ratings, which is larger in the copy: nearly equal.
        assert again == pytest.approx((low, high), abs=0.02)


@settings(deadline=None, max_examples=50)
@given(Rated)
def test_the_order_of_questions_and_raters_does_not_matter(ratings: list[tuple[int, ...]]) -> None:
    counts = rating_counts(ratings, 4)
    turned = rating_counts([tuple(reversed(each)) for each in reversed(ratings)], 4)
    assert randolph_kappa(turned) == pytest.approx(randolph_kappa(counts))
    assert fleiss_kappa(turned) == pytest.approx(fleiss_kappa(counts))
    assert krippendorff_alpha(turned, "ordinal") == pytest.approx(krippendorff_alpha(counts, "ordinal"))


@settings(deadline=None, max_examples=50)
@given(Rated)
def test_pairwise_agreement_is_a_count_of_pairs(ratings: list[tuple[int, ...]]) -> None:
    equal = [sum(a == b for a, b in ((x, y), (x, z), (y, z))) / 3 for x, y, z in ratings]
    assert pairwise_agreement(rating_counts(ratings, 4)) == pytest.approx(sum(equal) / len(equal))


@settings(deadline=None, max_examples=50)
@given(Rated)
def test_nominal_alpha_by_its_definition(ratings: list[tuple[int, ...]]) -> None:
    counts = rating_counts(ratings, 4)
    total = counts.sum(axis=0)
    n = total.sum()
    expected = 1 - (total * (total - 1)).sum() / (n * (n - 1))
    alpha = krippendorff_alpha(counts, "nominal")
    if expected == 0:
        assert alpha is None
    else:
        observed = 1 - pairwise_agreement(counts)  # type: ignore[operator]
        assert alpha == pytest.approx(1 - observed / expected)
