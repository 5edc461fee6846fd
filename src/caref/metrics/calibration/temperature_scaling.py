"""The metric of temperature scaling: what one fitted number gives, every example scored by another's fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caref.errors import CarefError
from caref.generation.prediction import Prediction
from caref.metrics.calibration.binned import (
    BINS,
    bin_sums,
    calibration_error,
    equal_width_places,
    mean_gap,
)
from caref.metrics.calibration.null import null_draws, null_values
from caref.metrics.calibration.resampling import bootstrap_intervals
from caref.metrics.calibration.scored import (
    INFINITE,
    NEEDS_CANDIDATES,
    NO_GOLD,
    ConfidenceOf,
    Scored,
    score,
)
from caref.metrics.calibration.scores import brier_scores, gold_losses
from caref.metrics.calibration.smooth import smooth_error, smooth_errors
from caref.metrics.calibration.temperature import (
    BOUNDS,
    FOLDS,
    CrossFit,
    cross_fit,
    losses_on_grid,
    resampled_temperatures,
    scaled_log_probabilities,
    too_few,
)
from caref.metrics.result import Direction, MetricResult, given
from caref.statistics.bootstrap import mean_interval

Array = NDArray[np.float64]
Places = NDArray[np.intp]

_ERRORS = ("calibration_error_scaled", "smooth_error_scaled")
_VALUES = (
    "temperature",
    "nll_scaled",
    "brier_scaled",
    *(f"{name}{end}" for name in _ERRORS for end in ("", "_expected", "_95")),
)
_COLUMNS = ("candidate_confidence_scaled", "nll_scaled", "brier_scaled")
_NO_CHOICE = "no question has two candidates"


@dataclass(frozen=True, slots=True)
class _Rows:
    """The scored predictions whose gold answer is among their candidates."""

    rows: Places
    ids: tuple[str, ...]
    scores: Array
    gold: Places
    chosen: Places
    correct: Array


def _rows(scored: Scored) -> _Rows:
    candidates = scored.candidates
    if candidates is None:
        none = np.zeros(0, dtype=np.intp)
        return _Rows(none, (), np.zeros((0, 1)), none, none, np.zeros(0))
    rows = candidates.with_gold
    return _Rows(
        rows=rows,
        ids=tuple(scored.ids[row] for row in rows),
        scores=candidates.scores[rows],
        gold=candidates.gold[rows],
        chosen=candidates.chosen[rows],
        correct=scored.correct[rows],
    )


class Temperature:
    """What the candidates' probabilities are worth after temperature scaling, and the temperature itself.

    ``softmax(s / T)`` with the scores `s` of ``label_log_probs_sum`` where there are any, else the logarithms
    of ``label_probabilities``. `T` minimises the mean log loss within 0.01 and 100. It is never fitted on the
    example that it scales: the ids are split into folds by a hash, the same in all splits and for all
    methods, and a fold is scaled by what was fitted on the others. So the scaled numbers may stand beside
    unscaled ones of the same predictions: a method that is calibrated by itself has to beat them.

    Values:
        ``temperature``: fitted on all examples: for *new* inputs, not for scoring these. ``nll_scaled``,
        ``brier_scaled``, ``calibration_error_scaled`` and ``smooth_error_scaled``, each as without scaling;
        the latter two with ``_expected`` and ``_95`` of perfect calibration. The counts ``n`` and
        ``n_scaled`` (with the gold answer among the candidates). Accuracy and AUROC of answers are not among
        them: the likeliest candidate stays the same. The interval of the temperature is over resampled
        examples; those of the scaled means hold the fitted temperatures fixed. Per example:
        ``candidate_confidence_scaled``, ``nll_scaled`` and ``brier_scaled``, None where undefined. The
        fingerprint is ``bins``, whose confidence it is and the number of folds.

    A note of ``temperature`` says where it lies on a bound: there is then no best one within. All is
    undefined for fewer than two examples a fold, without candidates, and for ``confidence_of="written"``.

    Args:
        bins: As in ``calibration_error``.
        confidence_of: As in ``calibration_error``.
        temperature_folds: Folds of the examples that the temperature is cross-fitted over.

    Raises:
        CarefError: If `bins` is not positive, or there are fewer than two folds.
    """

    name = "temperature"
    direction: Direction | None = None
    range = BOUNDS
    unit = "divisor of log-probabilities"
    source = "Guo et al., 2017, arXiv:1706.04599"

    def __init__(
        self, bins: int = BINS, confidence_of: ConfidenceOf = "auto", temperature_folds: int = FOLDS
    ) -> None:
        if bins < 1:
            raise CarefError(f"bins must be at least 1, got {bins}")
        if temperature_folds < 2:
            raise CarefError(f"temperature_folds must be at least 2, got {temperature_folds}")
        self.bins = bins
        self.confidence_of: ConfidenceOf = confidence_of
        self.temperature_folds = temperature_folds

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """Temperature scaling within `predictions`.

        Raises:
            CarefError: If a prediction's candidate probabilities do not add up to 1.
        """
        scored = score(predictions, self.confidence_of)
        usable = _rows(scored)
        if reason := self._reason(scored, usable):
            return self._undefined(scored, reason)
        fit = cross_fit(usable.scores, usable.gold, usable.ids, folds=self.temperature_folds)
        return self._scaled(scored, usable, fit)

    def _reason(self, scored: Scored, usable: _Rows) -> str | None:
        """Why there is no temperature; None where there is one."""
        if not usable.gold.size:
            return scored.reason or (NO_GOLD if scored.candidates else NEEDS_CANDIDATES)
        if not np.isfinite(usable.scores[np.arange(usable.gold.size), usable.gold]).all():
            return INFINITE
        if np.isfinite(usable.scores).sum(axis=1).max() < 2:
            return _NO_CHOICE
        return too_few(usable.ids, self.temperature_folds)

    def _fingerprint(self, scored: Scored) -> dict[str, object]:
        return {
            "bins": self.bins,
            "confidence_of": scored.source,
            "temperature_folds": self.temperature_folds,
        }

    def _undefined(self, scored: Scored, reason: str) -> MetricResult:
        return MetricResult(
            values={**dict.fromkeys(_VALUES), "n": scored.size, "n_scaled": 0},
            per_example={name: [None] * scored.size for name in _COLUMNS},
            fingerprint=self._fingerprint(scored),
            notes=dict.fromkeys(_VALUES, reason),
        )

    def _scaled(self, scored: Scored, usable: _Rows, fit: CrossFit) -> MetricResult:
        logs = scaled_log_probabilities(usable.scores, fit.temperatures)
        p = np.exp(logs)
        f, c = np.minimum(p[np.arange(len(p)), usable.chosen], 1.0), usable.correct
        losses, briers = gold_losses(logs, usable.gold), brier_scores(p, usable.gold)
        ordered, bins = np.sort(f), self.bins
        null = null_draws(ordered, lambda outcomes: _errors(ordered, outcomes, bins))
        values: dict[str, float | None] = {
            "temperature": fit.overall.temperature,
            "nll_scaled": float(losses.mean()),
            "brier_scaled": float(briers.mean()),
            "calibration_error_scaled": calibration_error(f, c, bins=bins),
            "smooth_error_scaled": smooth_error(f, c),
            **null_values(null),
        }
        grid = losses_on_grid(usable.scores, usable.gold)
        intervals = bootstrap_intervals(
            usable.ids,
            lambda weights: {
                "temperature": resampled_temperatures(grid, weights),
                **_errors(f, c[None], bins, weights),
            },
            biased={name: value for name in _ERRORS if (value := values[name]) is not None},
        )
        bound = f"on its {fit.overall.at} bound: none between {BOUNDS[0]} and {BOUNDS[1]:g} is the best"
        return MetricResult(
            values={**values, "n": scored.size, "n_scaled": int(usable.gold.size)},
            per_example={
                name: scored.spread(column, usable.rows)
                for name, column in zip(_COLUMNS, (f, losses, briers), strict=True)
            },
            fingerprint=self._fingerprint(scored),
            notes={"temperature": bound} if fit.overall.at else {},
            intervals=intervals
            | given(
                nll_scaled=mean_interval(losses, usable.ids), brier_scaled=mean_interval(briers, usable.ids)
            ),
        )


def _errors(confidences: Array, correct: Array, bins: int, weights: Array | None = None) -> dict[str, Array]:
    """The calibration errors after scaling, of many draws: as `calibration_errors`, fewer of them."""
    drawn = np.ones((1, confidences.size)) if weights is None else weights
    residuals = (correct - confidences) * (drawn / drawn.sum(axis=1, keepdims=True))
    binned = mean_gap(bin_sums(equal_width_places(confidences, bins), confidences, correct, bins, weights))
    return dict(zip(_ERRORS, (binned, smooth_errors(confidences, residuals)), strict=True))
