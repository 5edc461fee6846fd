"""The four metrics: their values by hand, what is undefined and why, intervals, and their speed."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caref.errors import CarefError
from caref.generation.prediction import Prediction
from caref.metrics import METRICS, MetricResult
from caref.metrics.calibration.auroc import Auroc
from caref.metrics.calibration.calibration_error import CalibrationError
from caref.metrics.calibration.nll import NegativeLogLikelihood
from caref.metrics.calibration.null import null_calibration_errors
from caref.metrics.calibration.temperature import cross_fit, fold_of, scaled_log_probabilities
from caref.metrics.calibration.temperature_scaling import Temperature

MakePrediction = Callable[..., Prediction]
Simulate = Callable[..., list[Prediction]]

NAMES = ("nll", "calibration_error", "auroc", "temperature")
NULLED = ("calibration_error", "equal_mass_error", "debiased_error", "maximum_error", "smooth_error")


def values(name: str, predictions: list[Prediction], **settings: Any) -> dict[str, Any]:
    return dict(METRICS.get(name)(**settings).compute(predictions).values)


def test_calibration_errors_by_hand(make_prediction: MakePrediction) -> None:
    predictions = [
        make_prediction(label_probabilities={"Bank ": 0.7, "boat": 0.2, "milk": 0.1}),
        make_prediction(id="2", label_probabilities={"bank": 0.3, "boat": 0.6, "milk": 0.1}),
        make_prediction(id="3"),
    ]
    result = CalibrationError().compute(predictions)
    by_label = {"bank": 0.3 + 0.7, "boat": 0.2 + 0.6, "milk": 0.2}
    expected = {
        "calibration_error": (0.3 + 0.6) / 2,
        "equal_mass_error": (0.3 + 0.6) / 2,
        "maximum_error": 0.6,
        "classwise_error": sum(by_label.values()) / 2 / 3,
        "n": 3,
        "n_scored": 2,
        "n_unscored": 1,
    }
    assert {name: result.values[name] for name in expected} == pytest.approx(expected)
    null = null_calibration_errors([0.7, 0.6])
    assert result.values["calibration_error_expected"] == pytest.approx(null.mean())
    assert result.values["calibration_error_95"] == pytest.approx(np.quantile(null, 0.95))
    assert result.per_example["candidate_confidence"] == [0.7, 0.6, None]
    assert result.per_example["candidate_correct"] == [1.0, 0.0, None]
    assert result.fingerprint == {"bins": 15, "confidence_of": "candidates"}
    # Each bin holds one: there is no error of pairs.
    missing = [f"debiased_error{end}" for end in ("", "_expected", "_95")]
    assert result.notes == dict.fromkeys(missing, "no bin holds two predictions")


def test_proper_scores_by_hand(make_prediction: MakePrediction) -> None:
    predictions = [
        make_prediction(label_probabilities={"Bank ": 0.7, "boat": 0.2, "milk": 0.1}),
        make_prediction(id="2", label_probabilities={"bank": 0.3, "boat": 0.6, "milk": 0.1}),
        make_prediction(id="3"),
        make_prediction(id="4", label_probabilities={"milk": 0.4, "boat": 0.6}),
    ]
    result = NegativeLogLikelihood().compute(predictions)
    expected = {
        "nll": -(math.log(0.7) + math.log(0.3)) / 2,
        "brier": (0.14 + 0.86) / 2,
        "brier_top": (0.3**2 + 0.6**2 + 0.6**2) / 3,
        "brier_uncertainty": 2 / 9,
        "n": 4,
        "n_gold": 2,
    }
    assert {name: result.values[name] for name in expected} == pytest.approx(expected)
    parts = [
        result.values[f"brier_{part}"] for part in ("reliability", "uncertainty", "within", "resolution")
    ]
    assert parts[0] + parts[1] + parts[2] - parts[3] == pytest.approx(expected["brier_top"], abs=1e-12)
    assert result.per_example["brier"] == pytest.approx([0.14, 0.86, None, None])
    assert result.per_example["nll"] == pytest.approx([-math.log(0.7), -math.log(0.3), None, None])
    assert result.notes == {}


@pytest.mark.parametrize(
    ("p", "nll", "brier"),
    [
        ({"bank": 1.0, "boat": 0.0}, 0.0, 0.0),
        ({"bank": 0.25, "a": 0.25, "b": 0.25, "c": 0.25}, math.log(4), 0.75),
        ({"bank": 1.0}, 0.0, 0.0),
    ],
)
def test_scores_of_certain_and_constant_predictions(
    make_prediction: MakePrediction, p: dict[str, float], nll: float, brier: float
) -> None:
    found = values("nll", [make_prediction(label_probabilities=p)])
    assert (found["nll"], found["brier"]) == pytest.approx((nll, brier))


def test_a_probability_of_zero_is_known_by_its_log_probability_or_has_no_nll(
    make_prediction: MakePrediction,
) -> None:
    p = {"bank": 0.0, "boat": 1.0}
    told = make_prediction(label_probabilities=p, label_log_probs_sum={"bank": -1000.0, "boat": -1.0})
    assert values("nll", [told])["nll"] == pytest.approx(999.0)
    untold = [make_prediction(id=str(place), label_probabilities=p) for place in range(20)]
    result = NegativeLogLikelihood().compute([told, *untold])
    assert result.values["nll"] is None
    assert result.notes == {"nll": "infinite: a gold answer has probability 0"}
    assert result.values["brier"] == 2.0
    assert result.per_example["nll"][:2] == [pytest.approx(999.0), None]
    assert Temperature().compute(untold).notes["temperature"] == "infinite: a gold answer has probability 0"


def test_a_gold_answer_outside_the_candidates_has_no_proper_score(make_prediction: MakePrediction) -> None:
    outside = make_prediction(label_probabilities={"milk": 0.4, "boat": 0.6})
    assert values("calibration_error", [outside])["calibration_error"] == pytest.approx(0.6)
    no_gold = "no prediction has its gold answer among the candidates"
    for name in ("nll", "temperature"):
        result = METRICS.get(name)().compute([outside])
        assert result.notes[name] == no_gold
    assert CalibrationError().compute([outside]).notes["classwise_error"] == no_gold
    inside = make_prediction(id="2", label_probabilities={"bank": 1.0})
    assert values("nll", [outside, inside])["brier"] == 0


def test_classwise_needs_the_same_labels_everywhere(simulate: Simulate) -> None:
    own = CalibrationError().compute(simulate(30, fixed=False))
    assert own.notes["classwise_error"] == "the candidates differ between questions"
    assert own.values["classwise_error_95"] is None
    same = simulate(30)
    turned = [
        each.model_copy(
            update={"label_probabilities": dict(reversed((each.label_probabilities or {}).items()))}
        )
        for each in same
    ]
    first, second = (values("calibration_error", each) for each in (same, turned))
    assert second["classwise_error"] == pytest.approx(first["classwise_error"])
    assert second["classwise_error_95"] == pytest.approx(first["classwise_error_95"])


def test_a_calibrated_predictor_is_within_every_null_band_and_a_sharpened_one_is_not(
    simulate: Simulate,
) -> None:
    fair = values("calibration_error", simulate(400, seed=5))
    sharp = values("calibration_error", simulate(400, seed=5, temperature=4.0))
    for name in (*NULLED, "classwise_error"):
        assert fair[name] <= fair[f"{name}_95"], name
        if name != "maximum_error":
            assert sharp[name] > sharp[f"{name}_95"], name


def test_written_confidences(make_prediction: MakePrediction) -> None:
    predictions = [
        make_prediction(id=str(place), confidence=0.5 + place / 100, label="bank" if place % 3 else "boat")
        for place in range(40)
    ]
    for name in NAMES:
        result = METRICS.get(name)().compute(predictions)
        assert result.fingerprint["confidence_of"] == "written"
    assert values("calibration_error", predictions)["n_scored"] == 40
    assert values("auroc", predictions)["auroc"] is not None
    scores = NegativeLogLikelihood().compute(predictions)
    assert scores.values["brier_top"] is not None
    takes = "it takes the probabilities of all candidates; there is one confidence per prediction"
    assert scores.notes == {"nll": takes, "brier": takes}
    assert Temperature().compute(predictions).notes["temperature"] == takes


@pytest.mark.parametrize("name", NAMES)
def test_without_any_confidence_all_is_undefined(name: str, make_prediction: MakePrediction) -> None:
    result = METRICS.get(name)().compute([make_prediction(), make_prediction(id="2", label_probabilities={})])
    defined = {each for each, value in result.values.items() if value is not None}
    assert all(each == "n" or each.startswith("n_") for each in defined)
    reason = "no prediction carries candidate probabilities, or a confidence in what it wrote"
    assert set(result.notes.values()) == {reason}
    assert all(numbers == [None, None] for numbers in result.per_example.values())


def test_auroc_is_undefined_where_all_are_right_or_wrong(make_prediction: MakePrediction) -> None:
    for gold, told in (("bank", "right"), ("boat", "wrong")):
        p = [{"bank": 0.5 + place / 10, "boat": 0.5 - place / 10} for place in range(1, 5)]
        predictions = [
            make_prediction(id=str(place), label_probabilities=each, gold_label=gold)
            for place, each in enumerate(p)
        ]
        result = Auroc().compute(predictions)
        assert (result.values["auroc"], result.notes) == (None, {"auroc": f"all answers are {told}"})
        assert result.values["aurc"] == (0 if told == "right" else 1)
        assert "auroc" not in result.intervals


def test_constant_predictions_have_an_auroc_of_one_half(make_prediction: MakePrediction) -> None:
    predictions = [
        make_prediction(id=str(place), label_probabilities={"bank": 0.6, "boat": 0.4}, gold_label=gold)
        for place, gold in enumerate(["bank", "boat", "bank", "boat"])
    ]
    found = values("auroc", predictions)
    assert (found["auroc"], found["aurc"], found["accuracy_at_80"]) == (0.5, 0.5, 50.0)


@pytest.mark.parametrize("name", NAMES)
def test_one_prediction_has_no_interval(name: str, make_prediction: MakePrediction) -> None:
    one = make_prediction(label_probabilities={"bank": 0.9, "boat": 0.1})
    assert METRICS.get(name)().compute([one]).intervals == {}


def test_temperature_scaling_of_an_overconfident_model(simulate: Simulate) -> None:
    predictions = simulate(600, temperature=3.0)
    result, before = Temperature().compute(predictions), values("nll", predictions)
    assert result.values["temperature"] == pytest.approx(3.0, rel=0.15)
    assert result.values["nll_scaled"] < before["nll"] - 0.2
    assert result.values["brier_scaled"] < before["brier"]
    assert result.values["calibration_error_scaled"] <= result.values["calibration_error_scaled_95"]
    low, high = result.intervals["temperature"]
    assert low < 3.0 < high
    for name in ("nll_scaled", "brier_scaled"):
        column = result.per_example[name]
        assert result.values[name] == pytest.approx(np.mean(column))
        assert result.intervals[name][0] < result.values[name] < result.intervals[name][1]


def test_scaled_columns_are_those_of_the_other_folds(simulate: Simulate) -> None:
    predictions = simulate(60, temperature=2.0)
    scores = np.array([list((each.label_log_probs_sum or {}).values()) for each in predictions])
    gold = np.array([int(each.gold_label[-1]) for each in predictions])
    fit = cross_fit(scores, gold, [each.id for each in predictions], folds=3)
    p = np.exp(scaled_log_probabilities(scores, fit.temperatures))
    result = Temperature(temperature_folds=3).compute(predictions)
    assert result.per_example["candidate_confidence_scaled"] == pytest.approx(p.max(axis=1))
    assert result.per_example["nll_scaled"] == pytest.approx(-np.log(p[np.arange(60), gold]))
    assert result.values["temperature"] == fit.overall.temperature
    assert len(set(fit.temperatures)) == 3


def test_a_scaled_number_does_not_depend_on_its_own_example(simulate: Simulate) -> None:
    """Another gold answer for one example changes nothing for its own fold but its own outcome."""
    predictions = simulate(50, temperature=2.0)
    other = next(
        name for name in predictions[7].label_probabilities or {} if name != predictions[7].gold_label
    )
    changed = [*predictions[:7], predictions[7].model_copy(update={"gold_label": other}), *predictions[8:]]
    first, second = (
        Temperature().compute(each).per_example["candidate_confidence_scaled"]
        for each in (predictions, changed)
    )
    for prediction, before, after in zip(predictions, first, second, strict=True):
        assert (before == after) == (fold_of(prediction.id) == fold_of(predictions[7].id))


@pytest.mark.parametrize(
    ("predictions", "reason"),
    [
        ({"n": 9}, "cross-fitting over 5 folds takes at least 10 examples, got 9"),
        ({"n": 30, "candidates": 1}, "no question has two candidates"),
    ],
)
def test_no_temperature(simulate: Simulate, predictions: dict[str, int], reason: str) -> None:
    result = Temperature().compute(simulate(**predictions))
    assert set(result.notes.values()) == {reason}
    assert result.values["n_scaled"] == 0


def test_a_temperature_on_a_bound_is_told(make_prediction: MakePrediction) -> None:
    right = [
        make_prediction(id=str(place), label_probabilities={"bank": 0.7, "boat": 0.3}) for place in range(30)
    ]
    result = Temperature().compute(right)
    assert result.values["temperature"] == 0.01
    assert result.notes == {"temperature": "on its lower bound: none between 0.01 and 100 is the best"}


def test_settings_are_checked() -> None:
    for metric in (CalibrationError, NegativeLogLikelihood, Temperature):
        with pytest.raises(CarefError, match="bins must be at least 1, got 0"):
            metric(bins=0)
    with pytest.raises(CarefError, match="temperature_folds must be at least 2, got 1"):
        Temperature(temperature_folds=1)


def test_bins_are_a_setting(make_prediction: MakePrediction) -> None:
    predictions = [
        make_prediction(label_probabilities={"bank": 0.9, "boat": 0.1}),
        make_prediction(id="2", label_probabilities={"boat": 0.6, "bank": 0.4}),
    ]
    of = "calibration_error"
    assert values(of, predictions, bins=15)[of] == pytest.approx((0.1 + 0.6) / 2)
    assert values(of, predictions, bins=1)[of] == pytest.approx((0.6 - 0.1) / 2)


def test_names_belong_to_one_metric_each(simulate: Simulate) -> None:
    results: dict[str, MetricResult] = {name: METRICS.get(name)().compute(simulate(12)) for name in NAMES}
    for first, second in combinations(results.values(), 2):
        assert set(first.values) & set(second.values) == {"n"}
        assert not set(first.per_example) & set(second.per_example)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_predictions_does_not_matter(name: str, simulate: Simulate) -> None:
    predictions = simulate(40, temperature=2.0)
    order = np.random.default_rng(0).permutation(40)
    first, second = (
        METRICS.get(name)().compute(each) for each in (predictions, [predictions[place] for place in order])
    )
    assert second.values == pytest.approx(first.values)
    assert {each: pytest.approx(interval) for each, interval in first.intervals.items()} == second.intervals
    for column, numbers in first.per_example.items():
        assert second.per_example[column] == pytest.approx([numbers[place] for place in order])


def test_examples_of_one_id_are_drawn_together(simulate: Simulate) -> None:
    predictions = simulate(30)
    twice = [each.model_copy() for each in predictions for _ in range(2)]
    first, second = (NegativeLogLikelihood().compute(each).intervals for each in (predictions, twice))
    assert second["nll"] == pytest.approx(first["nll"])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.floats(0.01, 1), min_size=2, max_size=5), min_size=1, max_size=14))
def test_all_values_lie_in_their_ranges(weights: list[list[float]]) -> None:
    predictions = [
        Prediction(
            id=str(place),
            label="0",
            explanation="",
            gold_label=str(place % 2),
            gold_explanations=("",),
            label_probabilities={str(k): weight / sum(row) for k, weight in enumerate(row)},
        )
        for place, row in enumerate(weights)
    ]
    highest = {"nll": math.inf, "brier": 2, "temperature": 100, "accuracy_at_80": 100, "nll_scaled": math.inf}
    for name in NAMES:
        for value, number in values(name, predictions).items():
            if number is not None and value != "brier_within" and not value.startswith("n_") and value != "n":
                assert 0 <= number <= highest.get(value, 2 if value == "brier_scaled" else 1), value
