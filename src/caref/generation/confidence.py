"""How sure the model is of the answer it gave, from the scores of the candidate answers.

Source: softmax over the candidates' summed log-probabilities, Jiang et al., 2021, arXiv:2012.00955.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from caref.generation.scoring import AnswerScore


def candidate_fields(scores: Mapping[str, AnswerScore], temperature: float | None = None) -> dict[str, Any]:
    """The fields of a `Prediction` that describe the candidates; none for free-form answers.

    Args:
        scores: Candidate to its score, separator included.
        temperature: Above 0: what the sums are divided by before the softmax. None or 1 leaves them.

    Returns:
        ``label_probabilities`` (the softmax of the sums), ``label_log_probs_sum``,
        ``label_log_probs_mean``, ``answer_mass`` (the sum of the candidates' probabilities) and, where it
        changed something, ``temperature``. The sums and the mass are the model's own, whatever it is.
    """
    if not scores:
        return {}
    sums = {candidate: score.log_prob_sum for candidate, score in scores.items()}
    largest, divisor = max(sums.values()), temperature or 1.0
    weights = {candidate: math.exp((value - largest) / divisor) for candidate, value in sums.items()}
    total = sum(weights.values())
    return {
        **({} if divisor == 1 else {"temperature": divisor}),
        "label_probabilities": {candidate: weight / total for candidate, weight in weights.items()},
        "label_log_probs_sum": sums,
        "label_log_probs_mean": {candidate: score.log_prob_mean for candidate, score in scores.items()},
        "answer_mass": sum(math.exp(value) for value in sums.values()),
    }


def confidence_fields(
    label: str, fields: Mapping[str, Any], answer_log_probs: Sequence[float]
) -> dict[str, Any]:
    """The confidence in `label`, and where it comes from.

    Args:
        label: What the model answered.
        fields: From `candidate_fields`.
        answer_log_probs: Of the generated answer's tokens, separator included; they count where
            `label` is none of the candidates.
    """
    probabilities = fields.get("label_probabilities") or {}
    if label in probabilities:
        return {"confidence": probabilities[label], "confidence_source": "candidates"}
    return {"confidence": math.exp(min(0.0, math.fsum(answer_log_probs))), "confidence_source": "generated"}
