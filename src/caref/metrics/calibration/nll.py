"""The metric of proper scores: log loss first, then Brier scores and what they are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caref.errors import CarefError
from caref.generation.prediction import Prediction
from caref.metrics.calibration.binned import BINS, equal_width_places
from caref.metrics.calibration.scored import (
    INFINITE,
    NEEDS_CANDIDATES,
    NO_GOLD,
    ConfidenceOf,
    Scored,
    score,
)
from caref.metrics.calibration.scores import brier_parts, brier_scores, gold_losses
from caref.metrics.result import Direction, MetricResult, given
from caref.statistics.bootstrap import mean_interval

Array = NDArray[np.float64]

_OF_ALL = ("nll", "brier")
_OF_TOP = ("brier_top", "brier_reliability", "brier_resolution", "brier_uncertainty", "brier_within")


class NegativeLogLikelihood:
    """Log loss and Brier score of the candidates' probabilities `p`: calibration and sharpness in one number.

    Both are proper: no probabilities have a lower expectation than the true ones. They need no bins, and
    their means over a sample are unbiased, which no calibration error is.

    Values:
        ``nll``: the mean of ``-ln p[gold]``, in [0, inf), undefined where infinite. ``brier``: the mean of
        ``sum over candidates of (p - 1[gold])^2``, in [0, 2]. ``brier_top``: the mean of ``(c - f)^2``, in
        [0, 1], `f` and `c` as in ``calibration_error``; it equals ``brier_reliability - brier_resolution +
        brier_uncertainty + brier_within``, with the bins of the calibration error as groups: how far they are
        from the diagonal, how far from each other, what knows nothing of the confidences, and what the
        confidences' differences within a bin add. The counts ``n`` and ``n_gold`` (with the gold answer among
        the candidates: those behind ``nll`` and ``brier``). Per example: ``nll`` and ``brier``, None where
        undefined or infinite. The fingerprint is ``bins`` and whose confidence it is.

    Args:
        bins: As in ``calibration_error``; they are the groups of the Brier score's parts.
        confidence_of: As in ``calibration_error``; written confidences have a ``brier_top`` alone.

    Raises:
        CarefError: If `bins` is not positive.
    """

    name = "nll"
    direction: Direction | None = "lower"
    range = (0.0, float("inf"))
    unit = "nats"
    source = (
        "Gneiting and Raftery, 2007, doi:10.1198/016214506000001437; parts: Murphy, 1973; within bins: "
        "Stephenson et al., 2008, doi:10.1175/2007WAF2006116.1"
    )

    def __init__(self, bins: int = BINS, confidence_of: ConfidenceOf = "auto") -> None:
        if bins < 1:
            raise CarefError(f"bins must be at least 1, got {bins}")
        self.bins = bins
        self.confidence_of: ConfidenceOf = confidence_of

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The proper scores of `predictions`.

        Raises:
            CarefError: If a prediction's candidate probabilities do not add up to 1.
        """
        scored = score(predictions, self.confidence_of)
        values: dict[str, float | None] = {**dict.fromkeys((*_OF_ALL, *_OF_TOP)), **self._top(scored)}
        notes = dict.fromkeys(_OF_TOP, scored.reason) if scored.reason else {}
        per_example: dict[str, list[float | None]] = {name: [None] * scored.size for name in _OF_ALL}
        intervals = given(brier_top=mean_interval((scored.correct - scored.confidences) ** 2, scored.ids))
        rows = scored.candidates.with_gold if scored.candidates else np.zeros(0, dtype=np.intp)
        if scored.candidates and rows.size:
            gold = scored.candidates.gold[rows]
            columns = {
                "nll": gold_losses(scored.candidates.log_probabilities[rows], gold),
                "brier": brier_scores(scored.candidates.probabilities[rows], gold),
            }
            per_example = {name: scored.spread(column, rows) for name, column in columns.items()}
            finite = {name: column for name, column in columns.items() if np.isfinite(column).all()}
            values |= {name: float(column.mean()) for name, column in finite.items()}
            ids = [scored.ids[row] for row in rows]
            intervals |= given(**{name: mean_interval(column, ids) for name, column in finite.items()})
            notes |= {name: INFINITE for name in columns if name not in finite}
        else:
            without = scored.reason or (NO_GOLD if scored.candidates else NEEDS_CANDIDATES)
            notes |= dict.fromkeys(_OF_ALL, without)
        return MetricResult(
            values={**values, "n": scored.size, "n_gold": int(rows.size)},
            per_example=per_example,
            fingerprint={"bins": self.bins, "confidence_of": scored.source},
            notes=notes,
            intervals=intervals,
        )

    def _top(self, scored: Scored) -> dict[str, float]:
        if scored.reason:
            return {}
        f, c = scored.confidences, scored.correct
        parts = brier_parts(f, c, equal_width_places(f, self.bins))
        return {
            "brier_top": float(((c - f) ** 2).mean()),
            "brier_reliability": parts.reliability,
            "brier_resolution": parts.resolution,
            "brier_uncertainty": parts.uncertainty,
            "brier_within": parts.within,
        }
