from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from caref.errors import DataError
from caref.results.prediction_file import read_checked_predictions

LINE: dict[str, Any] = {
    "id": "1", "label": "yes", "explanation": "it is", "gold_label": "yes", "gold_explanations": ["so it is"],
    "label_probabilities": {"yes": 0.7, "no": 0.3}, "label_log_probs_sum": {"no": -2.0, "yes": -1.0},
}  # fmt: skip


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_good_file(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", LINE, {**LINE, "id": "2", "gold_explanations": ["", "so"]})
    assert [each.id for each in read_checked_predictions(path)] == ["1", "2"]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"id": " "}, "the id is blank"),
        ({"id": "1"}, "the id '1' is also on line 1; the predictions of several splits go into a file each"),
        ({"gold_explanations": []}, "gold_explanations holds no text"),
        ({"gold_explanations": [" ", ""]}, "gold_explanations holds no text"),
        ({"label_probabilities": {"yes": 0.7, "no": 0.2}}, "label_probabilities must be at least 0 and add"),
        ({"label_probabilities": {"yes": 1.5, "no": -0.5}}, "label_probabilities must be at least 0 and add"),
        ({"label_probabilities": {}}, "label_probabilities must be at least 0 and add"),
        ({"label_log_probs_sum": {"yes": -1.0}}, "not of the same candidates"),
        ({"confidence": float("nan")}, "not a prediction: confidence: "),
    ],
)
def test_the_first_bad_line_is_named(tmp_path: Path, changed: dict[str, Any], told: str) -> None:
    path = write(tmp_path / "p.jsonl", LINE, {**LINE, "id": "2", **changed}, {})
    with pytest.raises(DataError) as raised:
        read_checked_predictions(path)
    assert str(raised.value).startswith(f"{path}:2: ") and told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_no_file_and_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        read_checked_predictions(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="is empty; expected one prediction per line"):
        read_checked_predictions(write(tmp_path / "p.jsonl"))
