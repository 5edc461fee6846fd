"""The metric of selective answering: whether the answers to keep back are the less confident ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caref.generation.prediction import Prediction
from caref.metrics.calibration.resampling import bootstrap_intervals
from caref.metrics.calibration.scored import ConfidenceOf, score
from caref.metrics.calibration.selective import (
    Ranked,
    accuracies_at_coverage,
    areas_under_risk,
    aurocs,
    excess_areas,
    ranked,
)
from caref.metrics.result import Direction, MetricResult

Array = NDArray[np.float64]

_NAMES = ("auroc", "aurc", "excess_aurc", "accuracy_at_80")


class Auroc:
    """Whether confidence tells right answers from wrong ones, however it is scaled.

    All numbers depend on the order of the confidences alone, `f` and `c` being those of
    ``calibration_error``; among equal confidences they are the expectation over random orders. One
    temperature for all questions of two candidates leaves them as they are.

    Values:
        ``auroc``: the probability that a right answer has the higher confidence than a wrong one, in [0, 1],
        0.5 of chance; undefined where all are right or all are wrong. ``aurc``: the mean share of wrong
        answers among the `k` most confident ones, over all `k`, in [0, 1], lower is better; ``excess_aurc``:
        what it lies above that of the best order, at least 0. ``accuracy_at_80``: the percentage of right
        answers among the most confident 80 %. The counts ``n`` and ``n_ranked`` (with a confidence). The
        fingerprint is whose confidence it is.

    Args:
        confidence_of: As in ``calibration_error``.
    """

    name = "auroc"
    direction: Direction | None = "higher"
    range = (0.0, 1.0)
    unit = "probability"
    source = (
        "AUROC: Hendrycks and Gimpel, 2017, arXiv:1610.02136; AURC and its excess: Geifman et al., 2019, "
        "arXiv:1805.08206"
    )

    def __init__(self, confidence_of: ConfidenceOf = "auto") -> None:
        self.confidence_of: ConfidenceOf = confidence_of

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The numbers of the risk-coverage curve and the ROC curve of `predictions`.

        Raises:
            CarefError: If a prediction's candidate probabilities do not add up to 1.
        """
        scored = score(predictions, self.confidence_of)
        counts = {"n": scored.size, "n_ranked": len(scored.ids)}
        fingerprint = {"confidence_of": scored.source}
        if scored.reason:
            return MetricResult(
                values={**dict.fromkeys(_NAMES), **counts},
                fingerprint=fingerprint,
                notes=dict.fromkeys(_NAMES, scored.reason),
            )
        f, c = scored.confidences, scored.correct
        found = {name: float(value[0]) for name, value in _of(ranked(f, c)).items()}
        values: dict[str, float | None] = {**found, **counts}
        notes, intervals = {}, bootstrap_intervals(scored.ids, lambda weights: _of(ranked(f, c, weights)))
        if np.isnan(found["auroc"]):
            values["auroc"] = None
            notes["auroc"] = f"all answers are {'right' if c[0] else 'wrong'}"
        return MetricResult(values=values, fingerprint=fingerprint, notes=notes, intervals=intervals)


def _of(groups: Ranked) -> dict[str, Array]:
    numbers = (aurocs(groups), areas_under_risk(groups), excess_areas(groups), accuracies_at_coverage(groups))
    return dict(zip(_NAMES, numbers, strict=True))
