"""Metrics over predictions. Importing this loads neither torch nor transformers.

Example:
    >>> METRICS.names()
    ['accuracy', 'broken', 'nbert', 'answer_confidence', 'nll', 'calibration_error', 'auroc', 'temperature',
     'rouge_l', 'bleu', 'explanation_length', 'repetition', 'restatement', 'distinct_2']
    >>> METRICS.get("accuracy")().compute([]).values
    {'accuracy': None, 'n': 0}
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from caref.generation.prediction import Prediction
from caref.metrics.result import Metric, MetricResult
from caref.registry import Registry

__all__ = ["METRICS", "Metric", "MetricResult", "evaluate"]

METRICS: Registry[type[Metric]] = Registry(
    "metric",
    {
        "accuracy": "caref.metrics.accuracy:Accuracy",
        "broken": "caref.metrics.broken:Broken",
        "nbert": "caref.metrics.nbert:NBert",
        "answer_confidence": "caref.metrics.confidence:AnswerConfidence",
        "nll": "caref.metrics.calibration.nll:NegativeLogLikelihood",
        "calibration_error": "caref.metrics.calibration.calibration_error:CalibrationError",
        "auroc": "caref.metrics.calibration.auroc:Auroc",
        "temperature": "caref.metrics.calibration.temperature_scaling:Temperature",
        "rouge_l": "caref.metrics.rouge_l:RougeL",
        "bleu": "caref.metrics.bleu:Bleu",
        "explanation_length": "caref.metrics.explanation_length:ExplanationLength",
        "repetition": "caref.metrics.repetition:Repetition",
        "restatement": "caref.metrics.restatement:Restatement",
        "distinct_2": "caref.metrics.diversity:Diversity",
    },
)


def evaluate(predictions: Sequence[Prediction], metrics: Iterable[Metric]) -> dict[str, MetricResult]:
    """Every metric over the same predictions, by the metric's name.

    Raises:
        ValueError: If two metrics have the same name.

    Example:
        >>> evaluate([], [METRICS.get("accuracy")()])["accuracy"].notes
        {'accuracy': 'no predictions'}
    """
    results: dict[str, MetricResult] = {}
    for metric in metrics:
        if metric.name in results:
            raise ValueError(f"two metrics are named {metric.name!r}; evaluate them one by one")
        results[metric.name] = metric.compute(predictions)
    return results
