"""The benchmark's scripts at a tiny size, so that they cannot go stale."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from caref.generation.prediction import Prediction, write_predictions
from caref.tasks.example import Example

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks" / "scripts"


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import rows

    return rows


def test_the_benchmark_writes_a_row_per_implementation(
    make_prediction: Callable[..., Prediction], tiny_bert: Path, tmp_path: Path
) -> None:
    explanations = ["milk is cold", "a man is playing guitar", ""]
    predictions = tmp_path / "predictions.jsonl"
    write_predictions(predictions, [make_prediction(explanation=text) for text in explanations])
    out = tmp_path / "new" / "benchmarks.csv"
    command = [sys.executable, SCRIPTS / "bertscore_speed.py", "--predictions", predictions]
    options = ["--encoder", tiny_bert, "--device", "cpu", "--rounds", "2", "--out", out]
    for _ in range(2):
        subprocess.run([*command, *options], check=True, capture_output=True)
    with out.open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    names = [row["implementation"] for row in written]
    assert names[: len(names) // 2] * 2 == names
    assert names[:2] == ["caref batched", "caref one pair at a time"]
    baseline = written[len(names) // 2 - 1]
    assert float(baseline["ratio_to_baseline"]) == 1
    assert {(row["shape"], row["mode"], row["runs"]) for row in written} == {
        ("candidates=3 pairs=3", "tiny-bert, layer 3", "2")
    }


def test_the_benchmark_of_the_cache_scores_every_complete_run(
    make_prediction: Callable[..., Prediction],
    tiny_bert: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bertscore_cache

    for name, complete in (("a/1", True), ("b/2", True), ("b/3", True), ("b/4", False)):
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        texts = [f"milk is cold because {name}", "a man is playing guitar", "UNK", ""]
        references = ("the milk", "Cold milk", "")
        predictions = [make_prediction(explanation=text, gold_explanations=references) for text in texts]
        write_predictions(folder / "predictions.jsonl", predictions)
        if complete:
            result = json.dumps({"method": name[0], "objective": "ce"})
            (folder / "result.json").write_text(result, encoding="utf-8")
    out = tmp_path / "benchmarks.csv"
    options = ["--encoder", tiny_bert, "--device", "cpu", "--rounds", "1", "--sample", "5", "--out", out]
    bertscore_cache.main([str(each) for each in ("--runs", tmp_path / "runs", *options)])
    assert "a ce: 1 runs, b ce: 2 runs" in capsys.readouterr().out
    with out.open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["implementation"] for row in written[:3]] == [
        "plain batches of 64 pairs",
        "caref, cache empty",
        "caref, cache warm, fresh process",
    ]
    assert {row["shape"] for row in written[:3]} == {
        "methods=2 runs=3 predictions=12 pairs=36 distinct_pairs=18 distinct_texts=8"
    }
    assert float(written[0]["ratio_to_baseline"]) == 1


def test_the_benchmark_script_of_the_baseline_pairs_each_example_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bertscore_baseline

    examples = [
        Example(str(number), {"question": str(number // 2)}, (), "a", (f"why {number}",))
        for number in range(40)
    ]
    pairs = bertscore_baseline.unrelated_pairs(examples, 10, seed=0)
    texts = [text for pair in pairs for text in pair]
    assert len(set(texts)) == 20
    number = {f"why {number}": number for number in range(40)}
    assert all(number[one] // 2 != number[other] // 2 for one, other in pairs)
    with pytest.raises(SystemExit, match="21 pairs were asked for, 40 examples give"):
        bertscore_baseline.unrelated_pairs(examples, 21, seed=0)


def test_a_summary_has_quartiles_and_a_paired_ratio(rows) -> None:  # type: ignore[no-untyped-def]
    summary = rows.summary([1.0, 2.0, 3.0], [10.0, 10.0, 10.0])
    assert summary == {"q25": "1.5", "median": "2", "q75": "2.5", "runs": 3, "ratio_to_baseline": "0.2"}
    assert rows.summary([2.0], [2.0])["q25"] == "2"


def test_every_function_is_timed_in_every_round(rows) -> None:  # type: ignore[no-untyped-def]
    called: list[str] = []
    seconds = rows.paired_times({"a": lambda: called.append("a"), "b": lambda: called.append("b")}, rounds=2)
    assert called == ["a", "b", "b", "a"]
    assert {name: len(values) for name, values in seconds.items()} == {"a": 2, "b": 2}


def test_rows_of_other_columns_are_refused(rows, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="missing or unknown"):
        rows.append_row(tmp_path / "x.csv", {"benchmark": "x"})
    (tmp_path / "x.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="has other columns"):
        rows.append_row(tmp_path / "x.csv", dict.fromkeys(rows.COLUMNS, ""))
