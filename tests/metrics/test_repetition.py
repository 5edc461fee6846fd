"""Repetition and loops: by hand, by counting naively, and at the edges."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caref.errors import CarefError
from caref.generation.prediction import Prediction
from caref.metrics.repetition import Repetition, is_looping, repeated_share

IDS = itertools.count()

MakePrediction = Callable[..., Prediction]
TOKENS = st.lists(st.sampled_from("abc"), max_size=14)


def test_values_by_hand(make_prediction: MakePrediction) -> None:
    texts = [
        "To be, or not: to be or not.",  # 5 runs of 4 words, 4 distinct
        "it is cold it is cold it is cold",  # 6, 3 distinct; a loop
        "all words here differ",
        "too short here",
        "no no no",  # a loop too short for 4-grams
        "UNK",
    ]
    result = Repetition().compute([make_prediction(id=text, explanation=text) for text in texts])
    assert result.per_example["repetition"] == [pytest.approx(20), 50, 0, None, None, None]
    assert result.per_example["looping"] == [0, 1, 0, 0, 1, None]
    assert result.values == pytest.approx(
        {"repetition": 70 / 3, "looping": 40, "n": 6, "n_repetition": 3, "n_looping": 5}
    )
    assert result.intervals.keys() == {"repetition", "looping"}


def test_broken_and_blank_explanations_are_left_out(make_prediction: MakePrediction) -> None:
    result = Repetition().compute(
        [make_prediction(explanation="no no no no no", broken=True), make_prediction(explanation=" ")]
    )
    assert result.values["n_looping"] == 0
    assert result.notes == {
        "repetition": "no explanation has 4 words",
        "looping": "no prediction has an explanation",
    }


def test_the_length_of_the_ngrams_is_a_setting(make_prediction: MakePrediction) -> None:
    result = Repetition(repetition_ngram=1).compute([make_prediction(explanation="a bank a boat")])
    assert result.values["repetition"] == 25
    assert result.fingerprint["repetition_ngram"] == 1
    with pytest.raises(CarefError, match="repetition_ngram must be at least 1, got 0"):
        Repetition(repetition_ngram=0)


@settings(deadline=None)
@given(TOKENS, st.integers(1, 4))
def test_the_share_is_that_of_ngrams_that_stand_earlier(tokens: list[str], n: int) -> None:
    runs = [tokens[start : start + n] for start in range(len(tokens) - n + 1)]
    repeats = sum(run in runs[:place] for place, run in enumerate(runs))
    assert repeated_share(tokens, n) == (pytest.approx(repeats / len(runs)) if runs else None)


@settings(deadline=None)
@given(TOKENS, st.integers(1, 4), st.integers(2, 4))
def test_a_loop_is_a_run_times_itself(tokens: list[str], longest: int, times: int) -> None:
    found = any(
        tokens[start : start + n] * times == tokens[start : start + n * times]
        for n in range(1, longest + 1)
        for start in range(len(tokens) - n * times + 1)
    )
    assert is_looping(tokens, longest=longest, times=times) is found


def test_a_run_of_five_words_is_no_loop() -> None:
    assert not is_looping(list("abcde") * 3)
    assert is_looping(list("abcd") * 3)
    assert not is_looping(list("abcd") * 2 + list("abc"))


@settings(max_examples=20, deadline=None)
@given(st.lists(TOKENS.map(" ".join), min_size=1, max_size=6))
def test_range_and_permutation(texts: list[str]) -> None:
    predictions = [
        Prediction(id=f"{next(IDS):06}", label="a", explanation=text, gold_label="a", gold_explanations=())
        for text in texts
    ]
    first, second = Repetition().compute(predictions), Repetition().compute(predictions[::-1])
    assert second.values == pytest.approx(first.values)
    assert second.intervals == first.intervals
    assert all(0 <= x < 100 for x in first.per_example["repetition"] if x is not None)
