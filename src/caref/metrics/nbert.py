"""nBERT: BERTScore of the explanations, counted only where the answer is right."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from caref.generation.prediction import Prediction
from caref.metrics.result import NO_PREDICTIONS, Direction, MetricResult, mean_or_none, undefined

if TYPE_CHECKING:
    from caref.metrics.bertscore import BertScorer


class NBert:
    """``nbert = mean(c * b)``: `c` is 1 for a right answer, `b` the explanation's BERTScore.

    ``b = 100 * max over references of F1``, both sides in lower case, neither idf weights nor
    rescaling. An empty reference scores 0 and stays among the references; a broken generation's
    explanation, ``UNK``, is scored as it is. Hence ``nbert = accuracy / 100 * f1_given_right``,
    and most differences in nBERT are differences in accuracy: read the factors.

    Values: ``nbert``, ``f1_given_right`` (the mean of `b` over right answers, None without any),
    ``f1_all`` (over all) and the counts ``n`` and ``n_right``. Per example: ``nbert`` and
    ``bertscore_f1``, also in percent. The fingerprint is that of `BertScorer`.

    Args:
        encoder: A directory, a hub id or "offline" (the encoder packaged in the extra of that name); only the
            default compares with published numbers.
        layer: The hidden layer compared; None takes the published one, the last for an unknown encoder.
        device: As in `BertScorer`.
    """

    name = "nbert"
    direction: Direction | None = "higher"
    range = (-100.0, 100.0)  # that of a cosine; real encoders stay well above 0
    unit = "percent"
    source = "FEB: Marasovic et al., 2022, arXiv:2111.08284; BERTScore: Zhang et al., 2020, arXiv:1904.09675"

    def __init__(
        self, encoder: str = "roberta-large", layer: int | None = None, *, device: str | None = None
    ) -> None:
        self.encoder = encoder
        self.layer = layer
        self.device = device

    @cached_property
    def scorer(self) -> BertScorer:
        """The scorer, loaded on its first use."""
        from caref.metrics.bertscore import BertScorer  # imports torch

        return BertScorer(self.encoder, self.layer, device=self.device, lowercase=True)

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The nBERT of `predictions`; without any, no encoder is loaded."""
        if not predictions:
            return undefined(NO_PREDICTIONS, "nbert", "f1_given_right", "f1_all", n=0, n_right=0)
        scores = self.scorer.f1(
            [prediction.explanation for prediction in predictions],
            [prediction.gold_explanations for prediction in predictions],
        )
        f1 = [100 * score for score in scores]
        right = [prediction.correct for prediction in predictions]
        normalised = [score if correct else 0.0 for score, correct in zip(f1, right, strict=True)]
        given_right = [score for score, correct in zip(f1, right, strict=True) if correct]
        return MetricResult(
            values={
                "nbert": mean_or_none(normalised),
                "f1_given_right": mean_or_none(given_right),
                "f1_all": mean_or_none(f1),
                "n": len(f1),
                "n_right": len(given_right),
            },
            per_example={"nbert": normalised, "bertscore_f1": f1},
            fingerprint=self.scorer.fingerprint(),
            notes={} if given_right else {"f1_given_right": "no answer is right"},
        )
