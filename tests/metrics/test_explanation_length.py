"""Lengths by hand, and what is left out of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caref.generation.prediction import Prediction
from caref.metrics.explanation_length import ExplanationLength

IDS = itertools.count()

MakePrediction = Callable[..., Prediction]

COUNTS = st.lists(
    st.tuples(st.integers(0, 5), st.lists(st.integers(0, 5), max_size=3)), min_size=1, max_size=8
)


def predicted(explanation: str, *references: str) -> Prediction:
    return Prediction(
        id=f"{next(IDS):06}", label="a", explanation=explanation, gold_label="a", gold_explanations=references
    )


def test_values_by_hand() -> None:
    result = ExplanationLength().compute(
        [
            predicted("a bank  is\nnear", "one two", "one two three four", ""),  # 4 words, references of 3
            predicted("two words", "one"),
            predicted("UNK", "one two three four five"),
            predicted(" ", " "),
        ]
    )
    assert result.values == pytest.approx(
        {
            "explanation_length": 3,
            "reference_length": 3,
            "length_ratio": 6 / 4,
            "explanations_blank": 50,
            "n": 4,
            "n_explained": 2,
            "n_reference_length": 3,
            "n_length_ratio": 2,
        }
    )
    assert result.per_example["explanation_length"] == [4, 2, None, None]
    assert result.per_example["reference_length"] == [3, 1, 5, None]
    assert result.intervals["explanation_length"] == (2, 4)
    assert result.intervals["length_ratio"] == (pytest.approx(4 / 3), 2)
    assert result.intervals["explanations_blank"] == (0, 100)


def test_broken_generations_have_no_explanation(make_prediction: MakePrediction) -> None:
    values = ExplanationLength().compute([make_prediction(broken=True, explanation="a bank")]).values
    assert values["explanations_blank"] == 100
    assert values["explanation_length"] is None


def test_what_is_undefined_says_why() -> None:
    blank = ExplanationLength().compute([predicted("UNK"), predicted("")])
    assert blank.notes == {
        "explanation_length": "no prediction has an explanation",
        "reference_length": "no prediction has a reference",
        "length_ratio": "no prediction has an explanation and a reference",
    }
    assert blank.intervals == {"explanations_blank": (100, 100)}
    apart = ExplanationLength().compute([predicted("UNK", "a bank"), predicted("a bank")])
    assert apart.notes.keys() == {"length_ratio"}


@settings(max_examples=20, deadline=None)
@given(COUNTS)
def test_ranges_and_permutation(counts: list[tuple[int, list[int]]]) -> None:
    predictions = [predicted("w " * own, *("w " * each for each in others)) for own, others in counts]
    first, second = ExplanationLength().compute(predictions), ExplanationLength().compute(predictions[::-1])
    assert second.values == pytest.approx(first.values)
    assert second.intervals == first.intervals
    assert first.values["n_explained"] == sum(own > 0 for own, _ in counts)
    lengths = (first.values["explanation_length"], first.values["length_ratio"])
    assert all(value is None or value > 0 for value in lengths)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_explanations_as_long_as_their_reference_have_a_ratio_of_1(counts: list[int]) -> None:
    result = ExplanationLength().compute([predicted("w " * own, "v " * own) for own in counts])
    assert result.values["length_ratio"] == pytest.approx(1)
    assert result.values["explanation_length"] == result.values["reference_length"]
