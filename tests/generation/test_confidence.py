from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caref.generation.confidence import candidate_fields, confidence_fields
from caref.generation.scoring import AnswerScore

LOG_PROBS = st.floats(-2000, 0)


def scores(**sums: float) -> dict[str, AnswerScore]:
    return {name: AnswerScore(value, value / 2) for name, value in sums.items()}


def test_by_hand() -> None:
    fields = candidate_fields(scores(yes=math.log(0.3), no=math.log(0.1)))
    assert fields["label_probabilities"] == pytest.approx({"yes": 0.75, "no": 0.25})
    assert fields["label_log_probs_sum"] == {"yes": math.log(0.3), "no": math.log(0.1)}
    assert fields["label_log_probs_mean"] == {"yes": math.log(0.3) / 2, "no": math.log(0.1) / 2}
    assert fields["answer_mass"] == pytest.approx(0.4)
    # The answer is among them, whether or not it is the likeliest.
    assert confidence_fields("no", fields, [math.log(0.9)]) == {
        "confidence": pytest.approx(0.25), "confidence_source": "candidates",
    }  # fmt: skip
    # It is not: what the model gave its own words.
    assert confidence_fields("maybe", fields, [math.log(0.5), math.log(0.4)]) == {
        "confidence": pytest.approx(0.2), "confidence_source": "generated",
    }  # fmt: skip


def test_a_temperature_divides_the_sums_and_nothing_else() -> None:
    plain = candidate_fields(scores(yes=math.log(0.3), no=math.log(0.1)))
    scaled = candidate_fields(scores(yes=math.log(0.3), no=math.log(0.1)), 2.0)
    odds = math.sqrt(3)
    assert scaled["label_probabilities"] == pytest.approx({"yes": odds / (1 + odds), "no": 1 / (1 + odds)})
    assert scaled["temperature"] == 2.0
    for name in ("label_log_probs_sum", "label_log_probs_mean", "answer_mass"):
        assert scaled[name] == plain[name]
    assert confidence_fields("yes", scaled, [])["confidence"] == pytest.approx(odds / (1 + odds))
    # What was generated is none of them: its own probability, unscaled.
    assert confidence_fields("maybe", scaled, [math.log(0.5)])["confidence"] == pytest.approx(0.5)
    assert candidate_fields(scores(yes=math.log(0.3), no=math.log(0.1)), 1.0) == plain
    assert "temperature" not in plain


def test_free_form() -> None:
    assert candidate_fields({}) == {}
    assert confidence_fields("a dog", {}, [math.log(0.5)]) == {
        "confidence": pytest.approx(0.5), "confidence_source": "generated",
    }  # fmt: skip


def test_rounding_gives_no_probability_above_one() -> None:
    assert confidence_fields("x", {}, [1e-7])["confidence"] == 1.0
    assert confidence_fields("x", {}, [])["confidence"] == 1.0


@given(st.dictionaries(st.text(max_size=3), LOG_PROBS, min_size=1, max_size=6))
def test_probabilities_sum_to_one_however_small_the_scores(sums: dict[str, float]) -> None:
    fields = candidate_fields({name: AnswerScore(value, value) for name, value in sums.items()})
    probabilities = fields["label_probabilities"]
    assert math.fsum(probabilities.values()) == pytest.approx(1)
    assert all(0 <= value <= 1 for value in probabilities.values())
    assert fields["answer_mass"] == pytest.approx(math.fsum(map(math.exp, sums.values())), rel=1e-9)
    best = max(sums, key=sums.__getitem__)
    assert probabilities[best] == max(probabilities.values())
