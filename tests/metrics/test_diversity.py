"""Diversity by hand, and how it behaves as texts repeat."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caref.generation.prediction import Prediction
from caref.metrics.diversity import Diversity
from caref.metrics.result import MetricResult

TEXTS = st.lists(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=8
)


def diversity(*texts: str) -> MetricResult:
    return Diversity().compute(
        [
            Prediction(id=str(place), label="a", explanation=text, gold_label="a", gold_explanations=())
            for place, text in enumerate(texts)
        ]
    )


def test_values_by_hand() -> None:
    result = diversity("A bank is a bank.", "a  bank is a Bank.", "a river", "UNK", " ")
    # 12 words, of them a, bank, is, river; pairs: a bank, bank is, is a, a river.
    assert result.values == pytest.approx(
        {
            "distinct_2": 400 / 12,
            "distinct_1": 400 / 12,
            "distinct_explanations": 200 / 3,
            "most_common_share": 200 / 3,
            "n": 5,
            "n_distinct": 3,
            "n_distinct_words": 12,
        }
    )
    assert result.intervals == {}


def test_no_pair_reaches_from_one_text_into_the_next() -> None:
    assert diversity("a", "b").values["distinct_2"] == 0


def test_broken_predictions_alone_have_no_diversity() -> None:
    result = diversity("UNK", "")
    assert result.values["distinct_2"] is None
    assert result.values["n"] == 2
    assert set(result.notes.values()) == {"no prediction has an explanation"}


def test_texts_without_words_are_still_texts() -> None:
    result = diversity("!", "?")
    assert result.values["distinct_explanations"] == 100
    assert result.notes == dict.fromkeys(("distinct_2", "distinct_1"), "no explanation has a word")


@settings(deadline=None)
@given(TEXTS)
def test_it_counts_as_counters_do(texts: list[str]) -> None:
    values = diversity(*texts).values
    split = [text.split() for text in texts]
    total = sum(len(tokens) for tokens in split)
    unigrams = Counter(token for tokens in split for token in tokens)
    bigrams = Counter(pair for tokens in split for pair in pairwise(tokens))
    assert values["distinct_1"] == pytest.approx(100 * len(unigrams) / total)
    assert values["distinct_2"] == pytest.approx(100 * len(bigrams) / total)
    assert values["most_common_share"] == pytest.approx(
        100 * Counter(texts).most_common(1)[0][1] / len(texts)
    )


@settings(deadline=None)
@given(TEXTS)
def test_permutation_and_the_same_again(texts: list[str]) -> None:
    once, reordered, twice = diversity(*texts), diversity(*texts[::-1]), diversity(*texts, *texts)
    assert reordered.values == once.values
    for name in ("distinct_1", "distinct_2", "distinct_explanations"):
        assert twice.values[name] == pytest.approx(once.values[name] / 2)
    assert twice.values["most_common_share"] == pytest.approx(once.values["most_common_share"])
