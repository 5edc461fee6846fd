"""How different the explanations of one set of predictions are from each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from caref.generation.prediction import Prediction
from caref.metrics.result import NO_PREDICTIONS, Direction, MetricResult, undefined
from caref.metrics.words import WORDS, ngrams, words

_VALUES = ("distinct_2", "distinct_1", "distinct_explanations", "most_common_share")


class Diversity:
    """Distinct-1 and distinct-2: distinct words and pairs of neighbours, per 100 words of all explanations.

    As in the source, both are divided by the number of words, so that even a set in which nothing
    repeats has a distinct-2 below 100: k explanations have k pairs fewer than words. Predictions
    without an explanation (broken, blank, ``UNK``) are left out. Words are `words.words`.

    The first three values fall as predictions are added, whatever these are: compare sets of
    equally many explanations only, best of the same examples. They have no interval: examples drawn with
    replacement repeat and are less diverse by that alone.

    Values:
        ``distinct_2``, ``distinct_1``; ``distinct_explanations``: distinct texts per 100 explanations, case
        and runs of white space ignored; ``most_common_share``: the percentage of explanations that are
        the most frequent text; the counts ``n``, ``n_distinct`` (explanations, behind all four) and
        ``n_distinct_words`` (the words of them, repeated ones too). The fingerprint holds what a word is.
    """

    name = "distinct_2"
    direction: Direction | None = "higher"
    range = (0.0, 100.0)
    unit = "percent"
    source = "Li et al., 2016, arXiv:1510.03055"

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The diversity of `predictions`."""
        texts = [each.explanation for each in predictions if each.is_explained]
        counts: dict[str, float] = {"n": len(predictions), "n_distinct": len(texts), "n_distinct_words": 0}
        if not texts:
            reason = "no prediction has an explanation" if predictions else NO_PREDICTIONS
            return undefined(reason, *_VALUES, **counts)
        tokens = [words(text) for text in texts]
        total = counts["n_distinct_words"] = sum(map(len, tokens))
        same = Counter(" ".join(text.casefold().split()) for text in texts)
        values: dict[str, float | None] = {
            "distinct_2": _distinct(tokens, 2, total),
            "distinct_1": _distinct(tokens, 1, total),
            "distinct_explanations": 100 * len(same) / len(texts),
            "most_common_share": 100 * max(same.values()) / len(texts),
        }
        return MetricResult(
            values={**values, **counts},
            fingerprint={"words": WORDS, "divided_by": "number of words"},
            notes={name: "no explanation has a word" for name in _VALUES if values[name] is None},
        )


def _distinct(texts: Sequence[Sequence[str]], n: int, total: float) -> float | None:
    """Distinct n-grams, none across texts, per 100 words; None without words."""
    return 100 * len({gram for text in texts for gram in ngrams(text, n)}) / total if total else None
