"""How long the explanations are, beside the references."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caref.generation.prediction import Prediction
from caref.metrics.result import (
    NO_PREDICTIONS,
    Direction,
    MetricResult,
    given,
    interval_of_mean,
    mean_or_none,
    undefined,
)
from caref.statistics.bootstrap import Interval, bootstrap_interval

_NO_EXPLANATION = "no prediction has an explanation"
_NO_REFERENCE = "no prediction has a reference"
_NO_PAIR = "no prediction has an explanation and a reference"


class ExplanationLength:
    """Mean number of words of the explanations; words are what white space parts.

    A tokenizer that writes ``isn ' t`` or ``road .`` makes its model's explanations longer by that.

    Values:
        ``explanation_length``: over predictions with an explanation: not broken, not blank, not ``UNK``.
        ``reference_length``: the mean over examples of the mean over their references, blank ones left out.
        ``length_ratio``: total words of the explanations over the total of their references' mean lengths,
        over the predictions that have both; 1 is as long as the references.
        ``explanations_blank``: the percentage of predictions without an explanation.
        The counts ``n``, ``n_explained``, ``n_reference_length`` and ``n_length_ratio``. Per example:
        ``explanation_length`` and ``reference_length``, None where undefined.
    """

    name = "explanation_length"
    direction: Direction | None = None
    range = (0.0, math.inf)
    unit = "words"
    source = "number of words, split at white space"

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The lengths in `predictions`."""
        if not predictions:
            names = ("explanation_length", "reference_length", "length_ratio", "explanations_blank")
            counts = dict.fromkeys(("n", "n_explained", "n_reference_length", "n_length_ratio"), 0)
            return undefined(NO_PREDICTIONS, *names, **counts)
        own = [float(len(p.explanation.split())) if p.is_explained else None for p in predictions]
        references = [_reference_length(p.gold_explanations) for p in predictions]
        lengths = [each for each in own if each is not None]
        reference_lengths = [each for each in references if each is not None]
        paired = [
            (each.id, a, b)
            for each, a, b in zip(predictions, own, references, strict=True)
            if a is not None and b is not None
        ]
        blank = [100.0 * (each is None) for each in own]
        values = {
            "explanation_length": mean_or_none(lengths),
            "reference_length": mean_or_none(reference_lengths),
            "length_ratio": _ratio([(a, b) for _, a, b in paired]),
            "explanations_blank": mean_or_none(blank),
            "n": len(predictions),
            "n_explained": len(lengths),
            "n_reference_length": len(reference_lengths),
            "n_length_ratio": len(paired),
        }
        reasons = {
            "explanation_length": _NO_EXPLANATION,
            "reference_length": _NO_REFERENCE,
            "length_ratio": _NO_PAIR,
        }
        return MetricResult(
            values=values,
            per_example={"explanation_length": own, "reference_length": references},
            fingerprint={"words": "split at white space", "left_out": "broken, blank, UNK"},
            notes={name: reason for name, reason in reasons.items() if values[name] is None},
            intervals=given(
                explanation_length=interval_of_mean(own, predictions),
                reference_length=interval_of_mean(references, predictions),
                length_ratio=_ratio_interval(paired),
                explanations_blank=interval_of_mean(blank, predictions),
            ),
        )


def _reference_length(references: Sequence[str]) -> float | None:
    """The mean number of words of those that are not blank, None without any."""
    return mean_or_none([float(len(text.split())) for text in references if text.strip()])


def _ratio(pairs: Sequence[tuple[float, float]]) -> float | None:
    if not pairs:
        return None
    return math.fsum(own for own, _ in pairs) / math.fsum(reference for _, reference in pairs)


def _ratio_interval(paired: Sequence[tuple[str, float, float]]) -> Interval | None:
    table = np.array([lengths for _, *lengths in paired], dtype=np.float64)

    def ratio(places: NDArray[np.intp]) -> float:
        own, reference = table[places].sum(axis=0)
        return float(own / reference)

    return bootstrap_interval(ratio, [example for example, *_ in paired])
