from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Caref = Callable[..., Any]

LINES = [
    {"id": str(number), "label": label, "explanation": "it is", "gold_label": "yes",
     "gold_explanations": ["so it is"]}
    for number, label in enumerate(["yes", "no", "yes", "yes"])
]  # fmt: skip


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    path = tmp_path / "theirs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return path


def test_one_set(caref: Caref, theirs: Path) -> None:
    ended = caref("evaluate", theirs, "--metrics", "accuracy,broken,calibration_error")
    assert ended.code == 0
    assert ended.out.startswith("theirs: 4 predictions\n")
    accuracy = next(line for line in ended.out.splitlines() if line.startswith("│ accuracy"))
    told = [cell.strip() for cell in accuracy.strip("│").split("│")]
    assert told == ["accuracy", "75.00", "25.00 to 100.00", ""]
    assert any(line.split()[1:4] == ["n", "│", "4"] for line in ended.out.splitlines())
    assert "no prediction carries candidate probabilities" in ended.out
    assert "undefined" in ended.out
    assert "nan" not in ended.out.lower()


def test_json_and_csv_agree(caref: Caref, theirs: Path) -> None:
    (record,) = json.loads(caref("evaluate", theirs, "--metrics", "accuracy", "--format", "json").out)
    rows = list(
        csv.DictReader(io.StringIO(caref("evaluate", theirs, "--metrics", "accuracy", "--format", "csv").out))
    )
    assert record["metrics"]["accuracy"]["values"] == {"accuracy": 75.0, "n": 4}
    assert [(row["value"], float(row["is"])) for row in rows] == [("accuracy", 75.0), ("n", 4.0)]
    assert (float(rows[0]["low"]), rows[1]["low"]) == (25.0, "")


def test_several_files_have_a_line_each(caref: Caref, theirs: Path) -> None:
    (theirs.parent / "ours.jsonl").write_text(theirs.read_text().replace('"no"', '"yes"'))
    told = caref("evaluate", theirs, theirs.parent / "ours.jsonl", "--metrics", "accuracy,broken").out
    lines = [line for line in told.splitlines() if "theirs" in line or "ours" in line]
    assert ["75.00" in lines[0], "100.00" in lines[1]] == [True, True]
    pooled = caref("evaluate", theirs.parent, "--metrics", "accuracy", "--pool").out
    assert pooled.startswith("pooled (2 files): 8 predictions")


def test_runs_are_rows_of_the_table(caref: Caref, runs: Path) -> None:
    told = caref("evaluate", runs, "--metrics", "accuracy,broken").out
    assert "│ red  │ tiny-t5 │ aq     │ caref     │      2 │" in told
    (record,) = [json.loads(caref("table", runs, "--format", "json").out)[0]["accuracy_mean"]]
    evaluated = json.loads(caref("evaluate", runs, "--metrics", "accuracy", "--format", "json").out)
    again = [each["metrics"]["accuracy"]["values"]["accuracy"] for each in evaluated]
    assert sum(again) / len(again) == pytest.approx(record)


def test_out(caref: Caref, theirs: Path, tmp_path: Path) -> None:
    ended = caref("evaluate", theirs, "--metrics", "accuracy", "--out", tmp_path / "evaluated")
    assert ended.out.endswith(f"written to {tmp_path}/evaluated: a folder of each set\n")
    folder = tmp_path / "evaluated" / "theirs"
    assert sorted(path.name for path in folder.iterdir()) == ["evaluation.json", "scores.jsonl"]
    sure = [{**line, "confidence": 0.5} for line in LINES]
    theirs.write_text("".join(json.dumps(line) + "\n" for line in sure))
    caref("evaluate", theirs, "--metrics", "calibration_error", "--out", tmp_path / "evaluated")
    assert "risk and coverage" in (folder / "calibration.svg").read_text()
    caref("evaluate", theirs, "--metrics", "accuracy", "--out", tmp_path / "evaluated")
    assert not (folder / "calibration.svg").exists()
    told = caref("evaluate", theirs, "--pool", "--out", tmp_path / "evaluated").mistake()
    assert told == "--out writes the sets one by one; leave out --pool"


def test_bad_input_is_one_line(caref: Caref, theirs: Path) -> None:
    theirs.write_text(theirs.read_text() + json.dumps({**LINES[0], "id": "9", "confidence": float("nan")}))
    told = caref("evaluate", theirs).mistake()
    assert told.startswith(f"{theirs}:5: not a prediction: confidence: ")
    assert caref("evaluate", theirs.parent / "no.jsonl").mistake().startswith("there is no file or folder")
    told = caref("evaluate", theirs, "--metrics", "acuracy").mistake()
    assert told.startswith(f"{theirs}:5")
    theirs.write_text(json.dumps(LINES[0]))
    told = caref("evaluate", theirs, "--metrics", "acuracy").mistake()
    assert told.startswith("unknown metric 'acuracy'; did you mean 'accuracy'?")
    told = caref("evaluate", theirs, "--metrics", "accuracy", "--bins", 3).mistake()
    assert told == "'bins' is a setting of none of the metrics accuracy"


def test_a_metric_whose_encoder_is_not_there_is_left_out_and_told(
    caref: Caref, theirs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    ended = caref("evaluate", theirs)
    assert ended.code == 0
    assert ended.err.startswith("nbert is left out: encoder 'roberta-large' is neither")
    assert "undefined" in ended.out and "encoder 'roberta-large' is neither" in ended.out


def test_perfect_calibration_stands_beside_an_error(caref: Caref, theirs: Path) -> None:
    lines = [{**line, "label_probabilities": {"yes": 0.8, "no": 0.2}} for line in LINES]
    theirs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = caref("evaluate", theirs, "--metrics", "calibration_error").out
    (line,) = [line for line in told.splitlines() if line.startswith("│ calibration_error")]
    assert "│ 0.2000 │" in line and "│ if calibrated 0." in line
    assert "calibration_error_95" not in told
