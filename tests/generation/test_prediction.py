from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from caref.errors import DataError
from caref.generation.prediction import Answer, Prediction, read_predictions, write_predictions

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
SHARE = st.floats(0, 1)

MINIMAL: dict[str, Any] = {
    "id": "1", "input": "i", "text": "yes because it is", "label": "yes", "explanation": "it is",
    "broken": False, "gold_label": "yes", "gold_explanations": ["it is so"],
}  # fmt: skip

predictions = st.builds(
    Prediction,
    id=TEXT, input=TEXT, text=TEXT, label=TEXT, explanation=TEXT, broken=st.booleans(), gold_label=TEXT,
    gold_explanations=st.lists(TEXT, max_size=3).map(tuple),
    confidence=st.none() | SHARE,
    confidence_source=st.none() | st.sampled_from(["candidates", "generated"]),
    label_probabilities=st.none() | st.dictionaries(TEXT, SHARE, max_size=3),
    label_log_probs_sum=st.none() | st.dictionaries(TEXT, st.floats(-1e6, 0), max_size=3),
    label_log_probs_mean=st.none() | st.dictionaries(TEXT, st.floats(-1e6, 0), max_size=3),
    temperature=st.none() | st.floats(0.01, 100),
    answer_mass=st.none() | SHARE,
)  # fmt: skip


@given(st.lists(predictions, max_size=4))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, made: list[Prediction]) -> None:
    path = tmp_path_factory.mktemp("predictions") / "predictions.jsonl"
    write_predictions(path, made)
    assert read_predictions(path) == made
    before = path.read_bytes()
    write_predictions(path, read_predictions(path))
    assert path.read_bytes() == before
    assert before.count(b"\n") == len(made), "one line each, whatever the text"


def test_the_paper_needs_no_confidence(tmp_path: Path) -> None:
    path = tmp_path / "other_system.jsonl"
    path.write_text(json.dumps(MINIMAL) + "\n")
    (prediction,) = read_predictions(path)
    assert prediction.confidence is None
    assert prediction.correct


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON: Expecting property name"),
        ("", "not JSON: Expecting value"),
        ("[]", "Input should be"),
        (json.dumps({**MINIMAL, "id": 1}), "id: Input should be a valid string"),
        (json.dumps({k: v for k, v in MINIMAL.items() if k != "gold_label"}), "gold_label: Field required"),
        (
            json.dumps({**MINIMAL, "confidance": 1}),
            "unknown field 'confidance'; did you mean 'confidence'?",
        ),
        (json.dumps({**MINIMAL, "seed": 1}), "unknown field 'seed'; there are: id, input, text"),
        (json.dumps({**MINIMAL, "confidence": 1.5}), "confidence: Input should be less than or equal to 1"),
        (json.dumps({**MINIMAL, "confidence": float("nan")}), "confidence: Input should be"),
        (json.dumps({**MINIMAL, "label_probabilities": {"yes": float("nan")}}), "label_probabilities.yes: "),
        (
            json.dumps({**MINIMAL, "answer_mass": float("inf")}),
            "answer_mass: Input should be a finite number",
        ),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_text(json.dumps(MINIMAL) + "\n" + line + "\n")
    with pytest.raises(DataError) as raised:
        read_predictions(path)
    assert str(raised.value).startswith(f"{path}:2: not a prediction: {reason}")
    assert "\n" not in str(raised.value)


def test_what_another_system_must_give(tmp_path: Path) -> None:
    needed = ("id", "label", "explanation", "gold_label", "gold_explanations")
    path = tmp_path / "other_system.jsonl"
    path.write_text(json.dumps({name: MINIMAL[name] for name in needed}))
    (prediction,) = read_predictions(path)
    assert (prediction.input, prediction.text, prediction.broken) == ("", "", False)
    for name in needed:
        path.write_text(json.dumps({other: MINIMAL[other] for other in needed if other != name}))
        with pytest.raises(DataError, match=f":1: not a prediction: {name}: Field required"):
            read_predictions(path)


def test_a_line_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_bytes(json.dumps(MINIMAL).encode() + b"\n" + json.dumps(MINIMAL).encode()[:-1] + b"\xff}\n")
    with pytest.raises(DataError, match=f"{path}:2: not a prediction: not UTF-8"):
        read_predictions(path)


def test_nothing_undefined_can_be_made() -> None:
    for wrong in (
        {"confidence": float("nan")},
        {"answer_mass": -0.1},
        {"temperature": 0.0},
        {"label_log_probs_sum": {"a": -float("inf")}},
    ):
        with pytest.raises(ValidationError):
            Prediction(**{**MINIMAL, **wrong})
    frozen = Prediction(**MINIMAL)
    with pytest.raises(ValidationError):
        frozen.label = "no"


def test_correct_ignores_case_and_outer_blanks() -> None:
    for label, gold, right in (
        (" Yes", "yes ", True),
        ("yes", "no", False),
        ("", "", True),
        ("ye s", "yes", False),
    ):
        assert Prediction(**{**MINIMAL, "label": label, "gold_label": gold}).correct == right


def test_an_answer_round_trip() -> None:
    answer = Answer(id="1", input="i", text="t", label="l", explanation="e", broken=True, confidence=0.5)
    assert Answer.model_validate_json(answer.model_dump_json()) == answer


@pytest.mark.parametrize(
    ("changes", "explained"),
    [
        ({}, True),
        ({"explanation": "unk"}, True),  # a word of the model's own
        ({"explanation": "UNK"}, False),
        ({"explanation": " UNK "}, False),
        ({"explanation": " \t"}, False),
        ({"broken": True}, False),
    ],
)
def test_what_is_broken_or_blank_is_no_explanation(changes: dict[str, Any], explained: bool) -> None:
    assert Prediction(**{**MINIMAL, **changes}).is_explained is explained
