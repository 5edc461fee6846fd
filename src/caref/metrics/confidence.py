"""How confident the answers are, and whether choosing the likeliest candidate is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from caref.generation.prediction import Prediction
from caref.metrics.result import NO_PREDICTIONS, Direction, MetricResult, mean_or_none, undefined

NO_CANDIDATES = "no prediction carries candidate probabilities"
NO_MASS = "no prediction carries answer_mass"


class AnswerConfidence:
    """Mean confidence over the predictions whose label is one of the candidates.

    Values:
        ``answer_confidence`` over the predictions whose confidence comes from the candidates;
        ``answer_mass``, the mean probability of all candidates together; ``argmax_agreement``, the
        share of generated labels that are the likeliest candidate; ``candidate_accuracy``, the
        percentage for which the likeliest candidate is the gold answer, which a model that fails to
        keep the format can still reach; and the counts ``n``, ``n_candidates``, ``n_generated`` and
        ``n_missing`` by where the confidence comes from. Per example: ``answer_confidence``, None
        outside the candidates.
    """

    name = "answer_confidence"
    direction: Direction | None = None
    range = (0.0, 1.0)
    unit = "probability"
    source = "Jiang et al., 2021, arXiv:2012.00955 (softmax over candidates)"

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The mean confidence of `predictions`."""
        means = ("answer_confidence", "answer_mass", "argmax_agreement", "candidate_accuracy")
        if not predictions:
            return undefined(NO_PREDICTIONS, *means, n=0, n_candidates=0, n_generated=0, n_missing=0)
        confidences = [_among_candidates(prediction) for prediction in predictions]
        candidates = sum(each is not None for each in confidences)
        missing = sum(
            each is None and prediction.confidence is None
            for each, prediction in zip(confidences, predictions, strict=True)
        )
        chosen = [(likeliest(p.label_probabilities), p) for p in predictions if p.label_probabilities]
        right = mean_or_none([float(same_answer(choice, p.gold_label)) for choice, p in chosen])
        values: dict[str, float | None] = {
            "answer_confidence": mean_or_none([c for c in confidences if c is not None]),
            "answer_mass": mean_or_none([p.answer_mass for p in predictions if p.answer_mass is not None]),
            "argmax_agreement": mean_or_none([float(same_answer(choice, p.label)) for choice, p in chosen]),
            "candidate_accuracy": None if right is None else 100 * right,
            "n": len(predictions),
            "n_candidates": candidates,
            "n_generated": len(predictions) - candidates - missing,
            "n_missing": missing,
        }
        return MetricResult(
            values=values,
            per_example={"answer_confidence": confidences},
            notes={
                name: NO_MASS if name == "answer_mass" else NO_CANDIDATES
                for name in means
                if values[name] is None
            },
        )


def _among_candidates(prediction: Prediction) -> float | None:
    """How sure the system is of a label that is one of its candidates; None of any other label."""
    shares = prediction.label_probabilities or {}
    if prediction.confidence_source == "candidates" and prediction.confidence is not None:
        return prediction.confidence
    if prediction.confidence_source is not None:
        return None
    return next((share for name, share in shares.items() if same_answer(name, prediction.label)), None)


def likeliest(probabilities: Mapping[str, float]) -> str:
    """The likeliest candidate, the first of equal ones.

    Example:
        >>> likeliest({"bank": 0.4, "boat": 0.4, "river": 0.2})
        'bank'
    """
    return max(probabilities, key=probabilities.__getitem__)


def same_answer(answer: str, other: str) -> bool:
    """Whether two answers are the same, ignoring case and outer blanks.

    Example:
        >>> same_answer(" Bank", "bank")
        True
    """
    return answer.strip().lower() == other.strip().lower()
