"""From predictions to the arrays that calibration is about: confidences, outcomes, probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from caref.errors import CarefError
from caref.generation.prediction import Prediction, fault_of_probabilities
from caref.metrics.calibration.temperature import scaled_log_probabilities
from caref.metrics.confidence import NO_CANDIDATES, likeliest, same_answer
from caref.metrics.result import NO_PREDICTIONS

Array = NDArray[np.float64]
Places = NDArray[np.intp]

ConfidenceOf = Literal["auto", "candidates", "written"]

NO_CONFIDENCE = "no prediction carries a confidence in what it wrote"
NEITHER = "no prediction carries candidate probabilities, or a confidence in what it wrote"
NO_GOLD = "no prediction has its gold answer among the candidates"
NEEDS_CANDIDATES = "it takes the probabilities of all candidates; there is one confidence per prediction"
INFINITE = "infinite: a gold answer has probability 0"


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates' probabilities, a row per scored prediction; rows with fewer candidates are filled up.

    Attributes:
        labels: The candidates of each row, in lower case and without outer blanks.
        probabilities: Of shape ``(n, most candidates)``; filled with 0.
        scores: ``label_log_probs_sum`` where a prediction has it, else the logarithm of its probabilities;
            of the same shape, filled with -inf.
        chosen: The place of the likeliest candidate, the first of equal ones, of shape ``(n,)``.
        gold: The place of the gold answer, -1 where it is none of the candidates, of shape ``(n,)``.
    """

    labels: tuple[tuple[str, ...], ...]
    probabilities: Array
    scores: Array
    chosen: Places
    gold: Places

    @property
    def with_gold(self) -> Places:
        """The rows whose gold answer is among the candidates."""
        return np.flatnonzero(self.gold >= 0)

    @property
    def log_probabilities(self) -> Array:
        """Natural, at most 0; where a probability was too small for a float, from the scores."""
        with np.errstate(divide="ignore"):
            logs = np.minimum(np.log(self.probabilities), 0.0)
        return np.where(self.probabilities > 0, logs, scaled_log_probabilities(self.scores))


@dataclass(frozen=True, slots=True)
class Scored:
    """Confidence `f` and outcome `c` of the predictions that have them.

    Attributes:
        size: How many predictions there were.
        source: Whose confidence it is: the likeliest candidate's, or that of the answer as written.
        places: Where each scored one stands among all, of shape ``(n,)``.
        ids: Of the scored ones.
        confidences: `f` within [0, 1], of shape ``(n,)``.
        correct: `c`, 1 or 0, of shape ``(n,)``.
        candidates: Their probabilities; None for what was written.
        reason: Why nothing is scored; None where something is.
    """

    size: int
    source: Literal["candidates", "written"]
    places: Places
    ids: tuple[str, ...]
    confidences: Array
    correct: Array
    candidates: Candidates | None
    reason: str | None

    def spread(self, values: Array, rows: Places | None = None) -> list[float | None]:
        """One number per prediction: the values of the scored ones (of `rows` of them), None elsewhere."""
        spread: list[float | None] = [None] * self.size
        for place, value in zip(self.places if rows is None else self.places[rows], values, strict=True):
            spread[place] = float(value) if math.isfinite(value) else None
        return spread


def score(predictions: Sequence[Prediction], confidence_of: ConfidenceOf = "auto") -> Scored:
    """Read confidences and outcomes.

    Args:
        predictions: Of any number.
        confidence_of: ``candidates``: `f` is the largest of ``label_probabilities``, `c` whether that
            candidate is the gold answer, whatever was written. ``written``: `f` is the prediction's own
            ``confidence``, `c` whether its label is right; for systems that give one number. ``auto``: the
            candidates where any prediction has them, else what was written.

    Raises:
        CarefError: If candidate probabilities are not at least 0 and add up to 1, or a confidence is not
            within [0, 1].

    Example:
        >>> one = Prediction(
        ...     id="1", label="boat", explanation="", gold_label="bank", gold_explanations=("",),
        ...     label_probabilities={"bank": 0.75, "boat": 0.25}, confidence=0.25,
        ... )
        >>> found = score([one])
        >>> found.source, found.confidences.tolist(), found.correct.tolist()
        ('candidates', [0.75], [1.0])
        >>> found = score([one], "written")
        >>> found.source, found.confidences.tolist(), found.correct.tolist()
        ('written', [0.25], [0.0])
    """
    has_candidates = any(prediction.label_probabilities for prediction in predictions)
    if confidence_of == "candidates" or (confidence_of == "auto" and has_candidates):
        return _of_candidates(predictions)
    return _of_what_was_written(predictions, NO_CONFIDENCE if confidence_of == "written" else NEITHER)


def _of_candidates(predictions: Sequence[Prediction]) -> Scored:
    places = [place for place, prediction in enumerate(predictions) if prediction.label_probabilities]
    chosen = [predictions[place] for place in places]
    candidates = _candidates(chosen)
    rows = np.arange(len(chosen))
    correct = [
        same_answer(likeliest(prediction.label_probabilities or {}), prediction.gold_label)
        for prediction in chosen
    ]
    return Scored(
        size=len(predictions),
        source="candidates",
        places=np.array(places, dtype=np.intp),
        ids=tuple(prediction.id for prediction in chosen),
        confidences=np.minimum(candidates.probabilities[rows, candidates.chosen], 1.0),
        correct=np.array(correct, dtype=np.float64),
        candidates=candidates,
        reason=_reason(predictions, chosen, NO_CANDIDATES),
    )


def _of_what_was_written(predictions: Sequence[Prediction], without: str) -> Scored:
    places = [place for place, prediction in enumerate(predictions) if prediction.confidence is not None]
    chosen = [predictions[place] for place in places]
    for prediction in chosen:
        if prediction.confidence is None or not 0 <= prediction.confidence <= 1:
            raise CarefError(
                f"prediction {prediction.id!r}: confidence must be within [0, 1], got {prediction.confidence}"
            )
    return Scored(
        size=len(predictions),
        source="written",
        places=np.array(places, dtype=np.intp),
        ids=tuple(prediction.id for prediction in chosen),
        confidences=np.array([prediction.confidence for prediction in chosen], dtype=np.float64),
        correct=np.array([prediction.correct for prediction in chosen], dtype=np.float64),
        candidates=None,
        reason=_reason(predictions, chosen, without),
    )


def _reason(predictions: Sequence[Prediction], scored: Sequence[Prediction], without: str) -> str | None:
    if scored:
        return None
    return without if predictions else NO_PREDICTIONS


def _candidates(predictions: Sequence[Prediction]) -> Candidates:
    distributions = [_distribution(prediction) for prediction in predictions]
    shape = len(predictions), max(map(len, distributions), default=1)
    probabilities, scores = np.zeros(shape), np.full(shape, -np.inf)
    chosen, gold = np.zeros(shape[0], dtype=np.intp), np.full(shape[0], -1, dtype=np.intp)
    for row, (p, prediction) in enumerate(zip(distributions, predictions, strict=True)):
        values = np.array(list(p.values()))
        probabilities[row, : values.size] = values
        scores[row, : values.size] = _scores(p, prediction)
        chosen[row] = values.argmax()
        gold[row] = _gold(p, prediction.gold_label)
    labels = tuple(tuple(candidate.strip().lower() for candidate in p) for p in distributions)
    return Candidates(labels, probabilities, scores, chosen, gold)


def _distribution(prediction: Prediction) -> dict[str, float]:
    p = prediction.label_probabilities or {}
    if fault := fault_of_probabilities(p):
        raise CarefError(f"prediction {prediction.id!r}: {fault}")
    return p


def _scores(p: Mapping[str, float], prediction: Prediction) -> Array:
    sums = prediction.label_log_probs_sum or {}
    if sums.keys() == p.keys():
        return np.array([sums[candidate] for candidate in p])
    with np.errstate(divide="ignore"):
        return np.log(np.array(list(p.values())))


def _gold(p: Mapping[str, float], gold_label: str) -> int:
    """The place of the gold answer among the candidates, first of all in the same letters; else -1."""
    names = list(p)
    if gold_label in p:
        return names.index(gold_label)
    return next((place for place, name in enumerate(names) if same_answer(name, gold_label)), -1)
