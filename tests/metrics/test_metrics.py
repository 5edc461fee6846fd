"""The contract of every metric, and what the small ones compute."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from caref.generation.prediction import Prediction
from caref.metrics import METRICS, Metric, MetricResult, evaluate

MakePrediction = Callable[..., Prediction]

SETTINGS = {"nbert": {"layer": 3, "device": "cpu"}}  # and the tiny encoder's directory


@pytest.fixture
def predictions(make_prediction: MakePrediction) -> list[Prediction]:
    return [
        make_prediction(),
        make_prediction(id="2", label="Bank ", explanation="A BANK is next to the river"),
        make_prediction(id="3", label="boat", text="boat because ...", gold_explanations=("a boat", "milk")),
        make_prediction(id="4", label="it is a bank", text="it is a bank", explanation="UNK", broken=True),
        make_prediction(id="5", explanation=" "),
    ]


@pytest.fixture(params=METRICS.names())
def metric(request: pytest.FixtureRequest, tiny_roberta: Path) -> Metric:
    return make_metric(request.param, tiny_roberta)


def make_metric(name: str, encoder: Path) -> Metric:
    keywords = dict(SETTINGS.get(name, {}))
    if name == "nbert":
        keywords["encoder"] = str(encoder)
    return METRICS.get(name)(**keywords)


def test_a_metric_states_its_facts(metric: Metric) -> None:
    assert METRICS.get(metric.name) is type(metric)
    assert metric.direction in ("higher", "lower", None)
    assert metric.range[0] < metric.range[1]
    assert metric.unit
    assert metric.source


def test_a_metric_gives_its_main_value_within_its_range(
    metric: Metric, predictions: list[Prediction]
) -> None:
    result = metric.compute(predictions)
    main = result.values[metric.name]
    assert main is None or metric.range[0] <= main <= metric.range[1]
    assert all(len(numbers) == len(predictions) for numbers in result.per_example.values())
    assert result.values["n"] == len(predictions)
    json.dumps([dict(result.values), dict(result.fingerprint)], allow_nan=False)


def test_a_metric_of_nothing_is_undefined_with_a_reason(metric: Metric) -> None:
    result = metric.compute([])
    assert result.values[metric.name] is None
    assert result.notes[metric.name] == "no predictions"
    assert result.values["n"] == 0
    assert set(result.values) == set(metric.compute([_plain()]).values)


def _plain() -> Prediction:
    return Prediction(
        id="1",
        input="",
        gold_label="a",
        gold_explanations=("b",),
        text="c",
        label="c",
        explanation="UNK",
        broken=True,
    )


def test_the_order_of_predictions_does_not_matter(metric: Metric, predictions: list[Prediction]) -> None:
    order = list(range(len(predictions)))
    random.Random(0).shuffle(order)
    first, second = metric.compute(predictions), metric.compute([predictions[index] for index in order])
    assert second.values == pytest.approx(first.values)
    for name, numbers in first.per_example.items():
        assert second.per_example[name] == pytest.approx([numbers[index] for index in order])


def test_accuracy_ignores_case_and_outer_blanks(predictions: list[Prediction]) -> None:
    result = METRICS.get("accuracy")().compute(predictions)
    assert result.values == {"accuracy": 60.0, "n": 5}
    assert result.per_example["correct"] == [1, 1, 0, 0, 1]


def test_broken_counts_missing_separators(predictions: list[Prediction]) -> None:
    assert METRICS.get("broken")().compute(predictions).values == {"broken": 20.0, "broken_count": 1, "n": 5}


def test_nbert_is_accuracy_times_f1_given_right(predictions: list[Prediction], tiny_roberta: Path) -> None:
    nbert = make_metric("nbert", tiny_roberta)
    results = evaluate(predictions, [nbert, METRICS.get("accuracy")()])
    values = results["nbert"].values
    accuracy = results["accuracy"].values["accuracy"]
    assert accuracy is not None
    assert values["f1_given_right"] is not None
    assert values["nbert"] == pytest.approx(accuracy / 100 * values["f1_given_right"])
    assert values["f1_all"] == pytest.approx(math.fsum(results["nbert"].per_example["bertscore_f1"]) / 5)
    assert values["n_right"] == 3


def test_nbert_scores_each_example_by_its_best_reference_in_lower_case(
    predictions: list[Prediction], tiny_roberta: Path
) -> None:
    from caref.metrics.bertscore import BertScorer

    result = make_metric("nbert", tiny_roberta).compute(predictions)
    scorer = BertScorer(tiny_roberta, 3, device="cpu")
    best = max(scorer.f1([predictions[2].explanation] * 2, [["a boat"], ["milk"]]))
    f1 = result.per_example["bertscore_f1"]
    assert f1[1] == pytest.approx(100, abs=1e-4)  # the reference in other letters
    assert f1[2] == pytest.approx(100 * best, abs=1e-4)
    assert f1[3] > 0  # UNK is scored as it is
    assert f1[4] == 0  # blank
    assert result.per_example["nbert"] == [f1[0], f1[1], 0, 0, 0]
    assert result.fingerprint["lowercase"] is True


def test_nbert_keeps_empty_reference_slots_at_zero(
    make_prediction: MakePrediction, tiny_roberta: Path
) -> None:
    nbert = make_metric("nbert", tiny_roberta)
    slots = [("the river", "", ""), ("the river",), ("", ""), ()]
    result = nbert.compute([make_prediction(gold_explanations=slot) for slot in slots])
    with_empty, without, *only_empty = result.per_example["bertscore_f1"]
    assert with_empty == without
    assert only_empty == [0, 0]


def test_nbert_given_right_is_undefined_without_a_right_answer(
    make_prediction: MakePrediction, tiny_roberta: Path
) -> None:
    result = make_metric("nbert", tiny_roberta).compute([make_prediction(label="boat")])
    assert result.values["nbert"] == 0
    assert result.values["f1_given_right"] is None
    assert result.notes == dict.fromkeys(("f1_given_right", "f1_given_right_rescaled"), "no answer is right")


def test_confidence_is_split_by_where_it_comes_from(make_prediction: MakePrediction) -> None:
    candidates = {"confidence_source": "candidates", "answer_mass": 0.5}
    result = METRICS.get("answer_confidence")().compute(
        [
            make_prediction(confidence=0.9, label_probabilities={"Bank": 0.9, "boat": 0.1}, **candidates),
            make_prediction(confidence=0.3, label_probabilities={"bank": 0.3, "boat": 0.7}, **candidates),
            make_prediction(confidence=0.1, confidence_source="generated"),
            make_prediction(),
        ]
    )
    assert result.values == pytest.approx(
        {
            "answer_confidence": 0.6,
            "answer_mass": 0.5,
            "argmax_agreement": 0.5,
            "candidate_accuracy": 50.0,
            "n": 4,
            "n_candidates": 2,
            "n_generated": 1,
            "n_missing": 1,
        }
    )
    assert result.per_example["answer_confidence"] == [0.9, 0.3, None, None]


def test_confidence_without_candidates_is_undefined(make_prediction: MakePrediction) -> None:
    result = METRICS.get("answer_confidence")().compute([make_prediction()])
    assert result.values["answer_confidence"] is None
    assert result.notes["answer_confidence"] == "no prediction carries candidate probabilities"


def test_two_metrics_of_one_name_are_refused() -> None:
    accuracy = METRICS.get("accuracy")()
    with pytest.raises(ValueError, match="two metrics are named 'accuracy'"):
        evaluate([], [accuracy, accuracy])


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_result_holds_no_number_that_is_not_finite(number: float) -> None:
    with pytest.raises(ValueError, match="'x' holds a number that is not finite"):
        MetricResult(values={"x": number})
    with pytest.raises(ValueError, match="'x' holds a number that is not finite"):
        MetricResult(values={}, per_example={"x": [1.0, number]})


def test_an_undefined_value_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="'x' needs a note"):
        MetricResult(values={"x": None})
