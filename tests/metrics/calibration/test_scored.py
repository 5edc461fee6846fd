"""Which confidence, and which outcome, a prediction gives."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from caref.errors import CarefError
from caref.generation.prediction import Prediction
from caref.metrics.calibration.scored import score

MakePrediction = Callable[..., Prediction]


def test_the_confidence_is_the_likeliest_candidates_and_so_is_the_answer(
    make_prediction: MakePrediction,
) -> None:
    """Generated: the gold answer, at 0.3. Likeliest: another one, at 0.7, and wrong."""
    p = {"bank": 0.3, "boat": 0.7}
    generated = make_prediction(label_probabilities=p, confidence=0.3, confidence_source="candidates")
    broken = make_prediction(
        id="2", label="??", broken=True, label_probabilities=p, confidence=0.9, confidence_source="generated"
    )
    assert generated.correct
    found = score([generated, broken])
    assert (found.source, found.ids) == ("candidates", ("1", "2"))
    assert (found.confidences.tolist(), found.correct.tolist()) == ([0.7, 0.7], [0, 0])
    written = score([generated, broken], "written")
    assert (written.confidences.tolist(), written.correct.tolist()) == ([0.3, 0.9], [1, 0])


def test_auto_is_candidates_where_any_prediction_has_them(make_prediction: MakePrediction) -> None:
    plain, sure = make_prediction(), make_prediction(id="2", confidence=0.9)
    both = make_prediction(id="3", confidence=0.6, label_probabilities={"bank": 0.8, "boat": 0.2})
    written = score([plain, sure])
    assert (written.source, written.places.tolist(), written.confidences.tolist()) == ("written", [1], [0.9])
    candidates = score([plain, sure, both])
    assert (candidates.source, candidates.places.tolist()) == ("candidates", [2])
    assert score([plain, sure, both], "written").places.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("confidence_of", "reason"),
    [
        ("auto", "no prediction carries candidate probabilities, or a confidence in what it wrote"),
        ("candidates", "no prediction carries candidate probabilities"),
        ("written", "no prediction carries a confidence in what it wrote"),
    ],
)
def test_the_reason_for_nothing(make_prediction: MakePrediction, confidence_of: str, reason: str) -> None:
    found = score([make_prediction(), make_prediction(id="2", label_probabilities={})], confidence_of)  # type: ignore[arg-type]
    assert (found.reason, found.size, found.ids) == (reason, 2, ())
    assert score([], confidence_of).reason == "no predictions"  # type: ignore[arg-type]


def test_candidates_as_arrays(make_prediction: MakePrediction) -> None:
    found = score(
        [
            make_prediction(label_probabilities={"Bank ": 0.75, "boat": 0.25}),
            make_prediction(
                id="2",
                label_probabilities={"a": 0.5, "b": 0.25, "c": 0.25},
                label_log_probs_sum={"c": -3.0, "b": -3.0, "a": -2.0},
            ),
        ]
    )
    candidates = found.candidates
    assert candidates is not None
    assert candidates.labels == (("bank", "boat"), ("a", "b", "c"))
    assert candidates.gold.tolist() == [0, -1]
    assert candidates.chosen.tolist() == [0, 0]
    assert candidates.with_gold.tolist() == [0]
    assert candidates.probabilities.tolist() == [[0.75, 0.25, 0], [0.5, 0.25, 0.25]]
    assert candidates.scores[0] == pytest.approx([math.log(0.75), math.log(0.25), -math.inf])
    assert candidates.scores[1].tolist() == [-2, -3, -3]
    assert found.spread(np.array([1.0, math.inf])) == [1.0, None]
    assert found.spread(np.array([5.0]), candidates.with_gold) == [5.0, None]


def test_the_gold_answer_in_its_own_letters_comes_first(make_prediction: MakePrediction) -> None:
    found = score([make_prediction(label_probabilities={"BANK": 0.25, "bank": 0.75})])
    assert found.candidates is not None
    assert found.candidates.gold.tolist() == [1]


@pytest.mark.parametrize(
    "p",
    [{"bank": 0.3, "boat": 0.3}, {"bank": 1.2, "boat": -0.2}, {"bank": math.nan, "boat": 0.5},
     {"boat": 0.5, "bank": math.nan}],
)  # fmt: skip
def test_what_is_no_distribution_is_refused(make_prediction: MakePrediction, p: dict[str, float]) -> None:
    # Past the checks of `Prediction`, which refuses NaN itself.
    prediction = make_prediction().model_copy(update={"label_probabilities": p})
    with pytest.raises(CarefError, match="prediction '1': label_probabilities must be at least 0 and add up"):
        score([prediction])


def test_a_written_confidence_that_is_none_is_refused(make_prediction: MakePrediction) -> None:
    for wrong in (math.nan, 1.5):
        prediction = make_prediction().model_copy(update={"confidence": wrong})
        with pytest.raises(CarefError, match=r"prediction '1': confidence must be within \[0, 1\], got"):
            score([prediction])
