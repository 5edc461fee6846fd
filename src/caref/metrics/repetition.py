"""How much an explanation repeats itself."""

from __future__ import annotations

from collections.abc import Sequence

from caref.errors import CarefError
from caref.generation.prediction import Prediction
from caref.metrics.result import (
    NO_PREDICTIONS,
    Direction,
    MetricResult,
    given,
    interval_of_mean,
    mean_or_none,
    undefined,
)
from caref.metrics.words import WORDS, ngrams, words

LOOP_NGRAM = 4
"""The longest run of words whose immediate repetition is looked for."""

LOOP_TIMES = 3
"""How often in succession a run of words stands in a loop, at least."""


class Repetition:
    """Percentage of an explanation's n-grams of words that stand earlier in it (seq-rep-n).

    ``repetition = mean(100 * (1 - distinct n-grams / all n-grams))`` over the explanations that are long
    enough for one. Predictions without an explanation (broken, blank, ``UNK``) are left out. Words are
    `words.words`: lower-case runs of letters and digits.

    Values:
        ``repetition``, in percent; ``looping``: the percentage of explanations in which a run of 1 to 4
        words stands three times or more in immediate succession, as in "is a kind of is a kind of is a
        kind of"; the counts ``n``, ``n_repetition`` (explanations of at least one n-gram) and
        ``n_looping`` (all explanations). Per example: ``repetition``, in percent, and ``looping``, 1 or
        0; None where undefined. The fingerprint holds what a word is, ``repetition_ngram`` and the limits
        of a loop.

    Args:
        repetition_ngram: Number of words whose repetition counts.

    Raises:
        CarefError: If `repetition_ngram` is not positive.
    """

    name = "repetition"
    direction: Direction | None = "lower"
    range = (0.0, 100.0)
    unit = "percent"
    source = "seq-rep-n: Welleck et al., 2020, arXiv:1908.04319"

    def __init__(self, repetition_ngram: int = 4) -> None:
        if repetition_ngram < 1:
            raise CarefError(f"repetition_ngram must be at least 1, got {repetition_ngram}")
        self.repetition_ngram = repetition_ngram

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The repetition in `predictions`."""
        if not predictions:
            return undefined(NO_PREDICTIONS, "repetition", "looping", n=0, n_repetition=0, n_looping=0)
        texts = [words(each.explanation) if each.is_explained else None for each in predictions]
        shares = [None if text is None else repeated_share(text, self.repetition_ngram) for text in texts]
        repetition = [None if share is None else 100 * share for share in shares]
        loops = [None if text is None else float(is_looping(text)) for text in texts]
        percent_loops = [None if each is None else 100 * each for each in loops]
        known = [each for each in repetition if each is not None]
        looping = [each for each in percent_loops if each is not None]
        notes = {}
        if not known:
            notes["repetition"] = f"no explanation has {self.repetition_ngram} words"
        if not looping:
            notes["looping"] = "no prediction has an explanation"
        return MetricResult(
            values={
                "repetition": mean_or_none(known),
                "looping": mean_or_none(looping),
                "n": len(predictions),
                "n_repetition": len(known),
                "n_looping": len(looping),
            },
            per_example={"repetition": repetition, "looping": loops},
            fingerprint={
                "words": WORDS,
                "repetition_ngram": self.repetition_ngram,
                "loop_ngram": LOOP_NGRAM,
                "loop_times": LOOP_TIMES,
            },
            notes=notes,
            intervals=given(
                repetition=interval_of_mean(repetition, predictions),
                looping=interval_of_mean(percent_loops, predictions),
            ),
        )


def repeated_share(tokens: Sequence[str], n: int) -> float | None:
    """The share of n-grams that repeat an earlier one, in [0, 1); None of fewer than `n` words.

    Example:
        >>> repeated_share("to be or not to be".split(), 2)  # "to be" a second time, of five
        0.2
    """
    found = ngrams(tokens, n)
    return (len(found) - len(set(found))) / len(found) if found else None


def is_looping(tokens: Sequence[str], *, longest: int = LOOP_NGRAM, times: int = LOOP_TIMES) -> bool:
    """Whether a run of at most `longest` words stands `times` times or more in immediate succession.

    Args:
        tokens: The words of a text.
        longest: Number of words of the longest run looked for, at least 1.
        times: At least 2.

    Example:
        >>> is_looping("it is cold it is cold it is cold".split())
        True
        >>> is_looping("it is cold and it is cold and wet".split())
        False
    """
    for n in range(1, longest + 1):
        equal = 0  # words in a row that stand again n words later
        for first, later in zip(tokens, tokens[n:], strict=False):
            equal = equal + 1 if first == later else 0
            if equal == n * (times - 1):
                return True
    return False
