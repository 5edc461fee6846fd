"""How many answers are right."""

from __future__ import annotations

from collections.abc import Sequence

from caref.generation.prediction import Prediction
from caref.metrics.result import (
    NO_PREDICTIONS,
    Direction,
    MetricResult,
    given,
    interval_of_mean,
    undefined,
)


class Accuracy:
    """Percentage of predictions whose label is the gold one, ignoring case and outer blanks.

    A broken generation's label is all of its text, so it counts as wrong unless that text is
    the gold answer itself.

    Values: ``accuracy`` and the count ``n``. Per example: ``correct``, 1 or 0.
    """

    name = "accuracy"
    direction: Direction | None = "higher"
    range = (0.0, 100.0)
    unit = "percent"
    source = "FEB: Marasovic et al., 2022, arXiv:2111.08284"

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The accuracy of `predictions`."""
        if not predictions:
            return undefined(NO_PREDICTIONS, "accuracy", n=0)
        correct = [float(prediction.correct) for prediction in predictions]
        return MetricResult(
            values={"accuracy": 100 * sum(correct) / len(correct), "n": len(correct)},
            per_example={"correct": correct},
            intervals=given(accuracy=interval_of_mean([100 * each for each in correct], predictions)),
        )
