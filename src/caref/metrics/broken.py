"""How many generations are not of the form "answer because explanation"."""

from __future__ import annotations

from collections.abc import Sequence

from caref.generation.prediction import Prediction
from caref.metrics.result import NO_PREDICTIONS, Direction, MetricResult, undefined


class Broken:
    """Generations in which the separator is missing.

    Values: ``broken`` in percent, and the counts ``broken_count`` and ``n``. Per example:
    ``broken``, 1 or 0.
    """

    name = "broken"
    direction: Direction | None = "lower"
    range = (0.0, 100.0)
    unit = "percent"
    source = "FEB: Marasovic et al., 2022, arXiv:2111.08284"

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The share of broken generations among `predictions`."""
        if not predictions:
            return undefined(NO_PREDICTIONS, "broken", broken_count=0, n=0)
        broken = [float(prediction.broken) for prediction in predictions]
        count = int(sum(broken))
        return MetricResult(
            values={"broken": 100 * count / len(broken), "broken_count": count, "n": len(broken)},
            per_example={"broken": broken},
        )
