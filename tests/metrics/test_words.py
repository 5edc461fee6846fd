"""What counts as a word, and which predictions have an explanation."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from caref.metrics.words import STOP_WORDS, content_words, ngrams, words


def test_a_contraction_has_the_same_words_however_a_tokenizer_writes_it() -> None:
    assert words("It isn't Anna's.") == words("it isn ' t anna ' s .") == words("IT ISN’T ANNA’S")


def test_digits_are_words_and_signs_are_not() -> None:
    assert words("choice1: 3.5 km_h -- über Straße") == ["choice1", "3", "5", "km", "h", "über", "straße"]
    assert words(" \n ... !") == []


def test_negations_and_frames_have_no_content() -> None:
    assert content_words("The correct answer is that it can't, doesn't and won't.") == set()
    assert content_words("Just because they run does not mean they are late") == {"run", "late"}


def test_stop_words_are_words() -> None:
    assert all(words(word) == [word] for word in STOP_WORDS)


@settings(deadline=None)
@given(st.text(max_size=40), st.integers(1, 5))
def test_ngrams_are_all_runs(text: str, n: int) -> None:
    tokens = words(text)
    found = ngrams(tokens, n)
    assert len(found) == max(0, len(tokens) - n + 1)
    assert all(list(gram) == tokens[start : start + n] for start, gram in enumerate(found))
