"""ROUGE-L of the explanations: how long a sequence of words they share with a reference."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

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


class RougeL:
    """``rouge_l = mean(100 * max over references of F)``, with the ROUGE-L of the package rouge-score.

    `F` is the harmonic mean of the longest common subsequence's share of the explanation's words and of
    the reference's. Words are the package's: lower-case runs of the letters a to z and digits, so that a
    text in another script has none. A text without words, on either side, scores 0, and so does an
    explanation without references. All predictions count, right or wrong; a broken generation's
    explanation, ``UNK``, is scored as it is.

    Values: ``rouge_l``, ``rouge_l_given_right`` (over right answers, None without any) and the counts
    ``n`` and ``n_rouge_l_given_right``. Per example: ``rouge_l``, also in percent. The fingerprint holds the
    package's tokenizer and version, and ``rouge_stemmer``, with it the version of the stemmer's package.

    Args:
        rouge_stemmer: Whether ROUGE compares the stems of words longer than three letters (Porter's).
    """

    name = "rouge_l"
    direction: Direction | None = "higher"
    range = (0.0, 100.0)
    unit = "percent"
    source = "Lin, 2004, ROUGE: A Package for Automatic Evaluation of Summaries, W04-1013"

    def __init__(self, rouge_stemmer: bool = False) -> None:
        self.rouge_stemmer = rouge_stemmer

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The ROUGE-L of `predictions`."""
        if not predictions:
            nothing = ("rouge_l", "rouge_l_given_right")
            return undefined(NO_PREDICTIONS, *nothing, n=0, n_rouge_l_given_right=0)
        scores = self._scores(predictions)
        counted = [score if each.correct else None for score, each in zip(scores, predictions, strict=True)]
        right = [score for score in counted if score is not None]
        return MetricResult(
            values={
                "rouge_l": mean_or_none(scores),
                "rouge_l_given_right": mean_or_none(right),
                "n": len(scores),
                "n_rouge_l_given_right": len(right),
            },
            per_example={"rouge_l": scores},
            fingerprint=self._fingerprint(),
            notes={} if right else {"rouge_l_given_right": "no answer is right"},
            intervals=given(
                rouge_l=interval_of_mean(scores, predictions),
                rouge_l_given_right=interval_of_mean(counted, predictions),
            ),
        )

    def _scores(self, predictions: Sequence[Prediction]) -> list[float]:
        """In percent, one per prediction; equal pairs of explanation and reference are compared once."""
        from rouge_score.rouge_scorer import RougeScorer
        from rouge_score.tokenizers import DefaultTokenizer

        scorer = RougeScorer(["rougeL"], tokenizer=DefaultTokenizer(self.rouge_stemmer))
        pairs = {(each.explanation, text) for each in predictions for text in each.gold_explanations}
        found = {
            pair: 100 * float(scorer.score(target=pair[1], prediction=pair[0])["rougeL"].fmeasure)
            for pair in pairs
        }
        return [
            max((found[each.explanation, text] for text in each.gold_explanations), default=0.0)
            for each in predictions
        ]

    def _fingerprint(self) -> dict[str, Any]:
        packages = ("rouge-score", "nltk") if self.rouge_stemmer else ("rouge-score",)
        return {
            "rouge_type": "rougeL",
            "references": "max of F",
            "tokenizer": "lower-case runs of a-z and 0-9",
            "rouge_stemmer": self.rouge_stemmer,
            "versions": {name: version(name) for name in packages},
        }
