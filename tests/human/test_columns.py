from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from caref.generation.prediction import Prediction
from caref.human.columns import columns
from caref.human.ratings import RatedQuestion
from caref.metrics import METRICS
from caref.metrics.result import MetricResult

MakeQuestion = Callable[..., RatedQuestion]


class Made:
    """A metric of numbers made by functions of a prediction, by name."""

    name = "made"
    direction = None
    range = (0.0, 100.0)
    unit = "words"
    source = "a test"

    def __init__(self, **of: Callable[[Prediction], float | None]) -> None:
        self.of = of
        self.seen: list[list[Prediction]] = []

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        self.seen.append(list(predictions))
        numbers = {name: [of(each) for each in predictions] for name, of in self.of.items()}
        return MetricResult(values={"n": len(predictions)}, per_example=numbers, fingerprint={"made": 1})


def length(prediction: Prediction) -> float:
    return float(len(prediction.explanation))


def shared_words(prediction: Prediction) -> float:
    own = set(prediction.explanation.split())
    return float(max(len(own & set(text.split())) for text in prediction.gold_explanations))


@pytest.fixture
def questions(make_question: MakeQuestion) -> list[RatedQuestion]:
    return [make_question(n, text="dog " * (n % 7 + 1) + "animal" * (n % 3)) for n in range(60)]


def test_what_a_number_depends_on_is_found_out(questions: list[RatedQuestion]) -> None:
    metric = Made(
        length=length,
        right=lambda each: float(each.correct),
        right_length=lambda each: float(each.correct) * len(each.explanation),
        input_length=lambda each: float(len(each.input)),
        constant=lambda each: 1.0,
        never=lambda each: None,
        rare=lambda each: float(each.id.endswith("/59")) * len(each.explanation),
    )
    found, left_out = columns(questions, [()] * 60, [metric])
    assert [(each.name, each.needs_reference) for each in found] == [("length", False), ("rare", False)]
    assert left_out == {
        "right": "depends on whether the answer is right, which it is here throughout",
        "right_length": "depends on whether the answer is right, which it is here throughout",
        "input_length": "does not depend on the explanation",
        "constant": "the same for every explanation",
        "never": "undefined for every explanation",
    }


def test_a_number_that_needs_references_has_none_without_others(make_question: MakeQuestion) -> None:
    texts = ("Every dog", "Every", "dog is an", "none")
    questions = [make_question(n, text=texts[n % 4]) for n in range(8)]
    questions[0] = make_question(0, text="animals animals")
    others = [("animals bark",), *[()] * 7]
    found, _ = columns(questions, others, [Made(length=length, shared_words=shared_words)])
    reference_free, reference_based = found
    assert not np.isnan(reference_free.gold_elsewhere).any()
    assert reference_based.needs_reference
    assert reference_based.generated.tolist() == [0, 1, 3, 0, 2, 1, 3, 0]
    assert reference_based.generated_elsewhere[0] == 1  # "animals" of the other reference
    assert reference_based.gold_elsewhere[0] == 0
    assert np.isnan(reference_based.gold_elsewhere[1:]).all()
    assert np.isnan(reference_based.generated_elsewhere[1:]).all()


def test_the_predictions_are_right_answers_to_what_was_shown(questions: list[RatedQuestion]) -> None:
    metric = Made(length=length)
    columns(questions, [("other",)] * 60, [metric])
    shown, generated, gold = metric.seen[-3:]
    assert [each.explanation for each in shown] == [each.generated_explanation.text for each in questions]
    assert shown[0].gold_explanations == ("Every dog is an animal.",)
    assert generated[0].gold_explanations == gold[0].gold_explanations == ("other",)
    assert gold[0].explanation == "Every dog is an animal."
    assert all(each.correct and not each.broken for each in (*shown, *generated, *gold))
    assert shown[3].input == "A dog runs 3 times.\nAn animal runs."
    assert len({each.id for each in shown}) == 60


def test_every_metric_of_the_registry_is_asked(questions: list[RatedQuestion]) -> None:
    tiny = Path(__file__).parents[1] / "metrics" / "golden" / "tiny-roberta"
    settings = {"nbert": {"encoder": str(tiny), "layer": 3, "device": "cpu"}}
    metrics = [METRICS.get(name)(**settings.get(name, {})) for name in METRICS.names()]
    found, left_out = columns(questions, [()] * 60, metrics)
    kinds = {each.name: each.needs_reference for each in found}
    assert {"bertscore_f1": True, "rouge_l": True, "explanation_length": False}.items() <= kinds.items()
    assert {"correct", "nbert", "reference_length"} <= left_out.keys()
    assert not kinds.keys() & left_out.keys()


def test_a_metric_without_numbers_of_single_explanations(questions: list[RatedQuestion]) -> None:
    assert columns(questions, [()] * 60, [Made()]) == ([], {"made": "says nothing of single explanations"})
