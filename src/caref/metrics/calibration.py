"""Whether the candidates' probabilities mean what they say: proper scores and the calibration error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caref.errors import CarefError
from caref.generation.prediction import Prediction
from caref.metrics.confidence import NO_CANDIDATES, likeliest, same_answer
from caref.metrics.result import NO_PREDICTIONS, Direction, MetricResult, mean_or_none

DRAWS = 1000
"""How often the outcomes are drawn anew for the calibration error of perfect calibration."""

SEED = 0

_NO_GOLD = "no prediction has its gold answer among the candidates"
_INFINITE = "infinite: a gold answer has probability 0"
_SCORES = ("nll", "brier")
_ERRORS = ("calibration_error", "calibration_error_expected", "calibration_error_95")
_ROUNDING = 0.01
"""How far rounded probabilities may be from adding up to 1."""


class Calibration:
    """How well the candidates' probabilities `p` fit the gold answers, whatever was generated.

    All numbers are of one distribution, ``label_probabilities``, and of every prediction that
    carries one, broken or not. The calibration error pairs `f`, the probability of the likeliest
    candidate (the first of equal ones), with `c`, 1 if that candidate is the gold answer and 0 if
    not. A prediction's own ``confidence`` belongs to the generated label, which may be another
    answer or none of the candidates; it is not used here.

    Values:
        ``calibration_error``: ``sum over bins of |sum of (c - f) in the bin| / n_scored``, with bins
        of equal width over `f`, each with its lower edge and the last with both; in [0, 1].
        ``calibration_error_expected`` and ``calibration_error_95``: the mean and the 95 % quantile
        of the same number were the predictions perfectly calibrated: every `c` drawn anew, 1 with
        probability `f`, 1,000 times with a fixed seed; in [0, 1]. Chance alone keeps the calibration
        error of a few hundred predictions above 0: read it beside these two.
        ``nll``: the mean of ``-ln p[gold]``, in [0, inf), undefined where infinite.
        ``brier``: the mean of ``sum over candidates of (p - 1[gold])^2``, in [0, 2].
        The counts ``n``, ``n_scored`` (with candidate probabilities), ``n_unscored`` (without) and
        ``n_gold`` (scored, with the gold answer among the candidates: those behind ``nll`` and
        ``brier``). Per example: ``candidate_confidence`` (`f`), ``candidate_correct`` (`c`) and
        ``brier``, None where undefined. The fingerprint is ``bins``.

    Args:
        bins: Number of bins of the calibration error.

    Raises:
        CarefError: If `bins` is not positive.
    """

    name = "calibration_error"
    direction: Direction | None = "lower"
    range = (0.0, 1.0)
    unit = "probability"
    source = (
        "ECE: Guo et al., 2017, arXiv:1706.04599; resampling: Vaicenavicius et al., 2019, arXiv:1902.06977"
    )

    def __init__(self, bins: int = 15) -> None:
        if bins < 1:
            raise CarefError(f"bins must be at least 1, got {bins}")
        self.bins = bins

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The calibration of `predictions`.

        Raises:
            CarefError: If a prediction's candidate probabilities do not add up to 1.
        """
        scores = [_score(prediction) for prediction in predictions]
        known = [score for score in scores if score is not None]
        brier = [score.brier for score in known if score.brier is not None]
        losses = [score.nll for score in known if score.nll is not None]
        infinite = any(math.isinf(loss) for loss in losses)
        values: dict[str, float | None] = {
            **self._errors(known),
            "nll": None if infinite else mean_or_none(losses),
            "brier": mean_or_none(brier),
            "n": len(predictions),
            "n_scored": len(known),
            "n_unscored": len(predictions) - len(known),
            "n_gold": len(losses),
        }
        reason = NO_PREDICTIONS if not predictions else NO_CANDIDATES if not known else _NO_GOLD
        notes = {name: reason for name in (*_ERRORS, *_SCORES) if values[name] is None}
        if infinite:
            notes["nll"] = _INFINITE
        return MetricResult(
            values=values,
            per_example={
                "candidate_confidence": [None if score is None else score.confidence for score in scores],
                "candidate_correct": [None if score is None else score.correct for score in scores],
                "brier": [None if score is None else score.brier for score in scores],
            },
            fingerprint={"bins": self.bins},
            notes=notes,
        )

    def _errors(self, scores: Sequence[_Score]) -> dict[str, float | None]:
        if not scores:
            return dict.fromkeys(_ERRORS)
        confidences, correct = [score.confidence for score in scores], [score.correct for score in scores]
        null = null_calibration_errors(confidences, bins=self.bins)
        return {
            "calibration_error": calibration_error(confidences, correct, bins=self.bins),
            "calibration_error_expected": float(null.mean()),
            "calibration_error_95": float(np.quantile(null, 0.95)),
        }


def calibration_error(confidences: Sequence[float], correct: Sequence[float], *, bins: int = 15) -> float:
    """The calibration error with bins of equal width (ECE).

    Args:
        confidences: In [0, 1], at least one.
        correct: 1 or 0 for each.
        bins: Number of bins; each holds its lower edge, the last its upper one too.

    Returns:
        ``sum over bins of |sum of (correct - confidence) in the bin| / n``, in [0, 1].

    Example:
        >>> calibration_error([1.0, 1.0, 0.75, 0.75], [1, 0, 1, 1])
        0.375
    """
    gaps = np.asarray(correct, dtype=np.float64) - np.asarray(confidences, dtype=np.float64)
    return _error(gaps, _bins(np.asarray(confidences, dtype=np.float64), bins), bins)


def null_calibration_errors(
    confidences: Sequence[float], *, bins: int = 15, draws: int = DRAWS, seed: int = SEED
) -> NDArray[np.float64]:
    """What the calibration error would be were every confidence the probability of being right.

    Args:
        confidences: In [0, 1], at least one; their order does not matter.
        bins: As in `calibration_error`.
        draws: How often all outcomes are drawn.
        seed: Of the draws.

    Returns:
        One calibration error per draw, of shape ``(draws,)``.
    """
    # Sorted, so that the same confidences in another order meet the same random numbers.
    ordered = np.sort(np.asarray(confidences, dtype=np.float64))
    places, generator = _bins(ordered, bins), np.random.default_rng(seed)
    return np.array(
        [_error((generator.random(ordered.size) < ordered) - ordered, places, bins) for _ in range(draws)]
    )


def _bins(confidences: NDArray[np.float64], bins: int) -> NDArray[np.intp]:
    # Comparing with the edges puts a confidence of k / bins into bin k; multiplying may round it below.
    return np.searchsorted(np.arange(1, bins) / bins, confidences, side="right")


def _error(gaps: NDArray[np.float64], places: NDArray[np.intp], bins: int) -> float:
    return float(np.abs(np.bincount(places, weights=gaps, minlength=bins)).sum() / gaps.size)


@dataclass(frozen=True, slots=True)
class _Score:
    """One prediction's part; `brier` and `nll` need the gold answer among the candidates."""

    confidence: float
    correct: float
    brier: float | None = None
    nll: float | None = None


def _score(prediction: Prediction) -> _Score | None:
    p = prediction.label_probabilities
    if not p:
        return None
    total = math.fsum(p.values())
    if min(p.values()) < 0 or abs(total - 1) > _ROUNDING:
        raise CarefError(
            f"prediction {prediction.id!r}: label_probabilities must be at least 0 and add up to 1, "
            f"got a sum of {total:.6g} and a smallest of {min(p.values()):.6g}"
        )
    choice, gold = likeliest(p), _gold(p, prediction)
    confidence, correct = min(p[choice], 1.0), float(same_answer(choice, prediction.gold_label))
    if gold is None:
        return _Score(confidence, correct)
    return _Score(confidence, correct, _brier(p, gold), _nll(p, gold, prediction))


def _gold(p: dict[str, float], prediction: Prediction) -> str | None:
    """The candidate that is the gold answer, first of all in the same letters."""
    if prediction.gold_label in p:
        return prediction.gold_label
    return next((candidate for candidate in p if same_answer(candidate, prediction.gold_label)), None)


def _brier(p: dict[str, float], gold: str) -> float:
    return math.fsum((value - (candidate == gold)) ** 2 for candidate, value in p.items())


def _nll(p: dict[str, float], gold: str, prediction: Prediction) -> float:
    if p[gold] > 0:
        return -math.log(min(p[gold], 1.0))
    # A probability too small for a float is 0; the log-probabilities still tell how small.
    sums = prediction.label_log_probs_sum or {}
    if sums.keys() != p.keys():
        return math.inf
    largest = max(sums.values())
    return largest + math.log(math.fsum(math.exp(value - largest) for value in sums.values())) - sums[gold]
