"""``caref quickstart``, on one task and one split and a model that knows nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caref.quickstart import plan
from caref.statistics import paired

Caref = Callable[..., Any]
ENCODER = Path(__file__).parents[1] / "metrics" / "golden" / "tiny-roberta"
WRITTEN = ("report.html", "summary.json")


@pytest.fixture
def small_plan(monkeypatch: pytest.MonkeyPatch, tiny_t5: Path) -> None:
    monkeypatch.setattr(plan, "TASKS", ("starter_choice3",))
    small = {
        "model": str(tiny_t5),
        "encoder": str(ENCODER),
        "shots": 4,
        "eval_size": 6,
        "epochs": 1,
        "max_new_tokens": 6,
    }
    monkeypatch.setattr(plan, "SETTINGS", {**plan.SETTINGS, **small})
    monkeypatch.setattr(paired, "DRAWS", 50)
    monkeypatch.setattr(paired, "FLIPS", 50)


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.usefixtures("small_plan")
def test_it_compares_writes_a_report_and_again_does_nothing(caref: Caref, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = caref("quickstart", "--out", out, "--splits", "0", "--workers", 1)

    assert ended.code == 0, ended.err
    for told in (
        "if calibrated, below", "accuracy: CAREF is ", "Brier score: CAREF is ", "NLL",
        "the first question of", "reference  ", "before     ", "There is one split", plan.LAST,
        str(out / "report.html"), f"caref table {out / 'runs'}",
    ):  # fmt: skip
        assert told in ended.out, told
    results = [json.loads(path.read_text("utf-8")) for path in sorted(out.glob("runs/*/result.json"))]
    assert Counter(result["objective"] for result in results) == {"ce": 2, "caref": 1}
    assert {path.name for path in out.iterdir()} == {"runs", "summary.json", "report.html"}

    summary = json.loads((out / "summary.json").read_text("utf-8"))
    assert summary["settings"] == ["before", "CE", "CAREF"]
    (task,) = summary["tasks"]
    assert task["chance"] == pytest.approx(100 / 3)
    assert {each["paired"]["value"] for each in task["differences"]} == {
        "correct", "nbert", "candidate_correct", "brier",
    }  # fmt: skip
    # Six answers are too few to fit a temperature to: there is no row with it.
    assert "temperature" not in ended.out
    undefined = task["nbert_parts"]["parts"]["accuracy_part"]["value"] is None
    assert ("nBERT: no parts of the difference: " if undefined else "nBERT: of the ") in ended.out
    assert set(task["values"]["before"]) >= {"accuracy", "f1_given_right", "nbert", "broken"}
    page = (out / "report.html").read_text("utf-8")
    assert page.count("<svg") == 2
    assert "caref quickstart --splits 0" in page
    assert all(line in page for line in (*plan.ABOUT, "What this does not show"))

    runs, written = files(out / "runs"), [(out / name).read_bytes() for name in WRITTEN]
    again = caref("quickstart", "--out", out, "--splits", "0", "--workers", 1)

    assert (again.code, again.out) == (0, ended.out)
    assert "3 of 3 runs are complete already" in again.err
    assert files(out / "runs") == runs
    assert [(out / name).read_bytes() for name in WRITTEN] == written


@pytest.mark.usefixtures("small_plan")
def test_without_the_packaged_encoder_the_rest_is_compared(
    caref: Caref, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caref.metrics.encoders._offline_package", lambda: None)
    ended = caref("quickstart", "--out", tmp_path, "--splits", "0", "--workers", 1)

    assert ended.code == 0, ended.err
    assert "F1 and nBERT are left out: " in ended.out
    assert "nBERT %" not in ended.out and "accuracy %" in ended.out
    assert "nBERT %" not in (tmp_path / "report.html").read_text("utf-8")


def test_mistakes_are_told_in_one_line(caref: Caref, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    caref("quickstart", "--out", tmp_path / "taken").mistake()
    both = caref("quickstart", "--out", tmp_path, "--full", "--splits", "0").mistake()
    assert both == "give either --splits or --full, not both"
    assert "there is no split 60" in caref("quickstart", "--out", tmp_path, "--splits", "60").mistake()
    assert "unknown method" in caref("quickstart", "--out", tmp_path, "--method", "qa").mistake()
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
