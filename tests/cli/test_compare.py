"""``caref compare``: what it prints, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caref.cli import comparison_cells, comparisons
from caref.results.evaluation import Evaluation, EvaluationFolder
from caref.results.result import MetricRecord
from caref.statistics import paired

Caref = Any


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "DRAWS", 200)
    monkeypatch.setattr(paired, "FLIPS", 2000)


def write(folder: Path, columns: dict[str, Sequence[float | None]]) -> None:
    records = {"nbert": MetricRecord(values={"nbert": 1.0}, fingerprint={"encoder": "tiny"})}
    size = len(next(iter(columns.values())))
    evaluation = Evaluation(name=folder.name, predictions_sha256="0", n=size, metrics=records)
    EvaluationFolder(folder).write(evaluation, [str(row) for row in range(size)], columns)


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three settings on seven splits: b is more often right than a, and c is as a."""
    root = tmp_path_factory.mktemp("systems")
    generator = np.random.default_rng(1)
    for name, chance in (("a", 0.4), ("b", 0.8), ("c", 0.4)):
        for split in range(7):
            right = (generator.random(50) < chance).astype(float)
            nbert = np.where(right > 0, 90 + generator.normal(size=50), 0.0)
            losses = 1 - 0.5 * right + 0.1 * generator.random(50)
            columns = {"correct": right, "nbert": nbert, "nll": losses, "nll_scaled": losses - 0.1}
            write(root / name / f"split{split}", {key: each.tolist() for key, each in columns.items()})
    return root


def three(systems: Path) -> list[Path]:
    return [systems / name for name in "abc"]


def test_text(caref: Caref, systems: Path) -> None:
    out = caref("compare", *three(systems)).out
    assert "7 splits: compared with a" in out
    rows = [line for line in out.splitlines() if "│ accuracy " in line]
    assert ["better" in row for row in rows] == [True, False]
    assert "not distinguishable" in rows[1]
    assert "NLL, reference + T" in out
    assert "nBERT = accuracy × F1 given right" in out
    assert "accuracy, ranked over 7 splits of all tasks: p (Friedman) " in out
    assert "Holm's p is that over examples corrected for 2 settings" in out
    assert "There are 7 splits: the interval is too narrow" in out
    assert "nan" not in out.lower().split()


def test_json_has_everything(caref: Caref, systems: Path) -> None:
    found = json.loads(caref("compare", *three(systems), "--format", "json").out)
    assert list(found) == ["comparisons", "decomposition", "rankings", "splits_left_out", "notes"]
    by = {(each["value"], each["setting"]): each for each in found["comparisons"]}
    assert {value for value, _ in by} == {"accuracy", "nbert", "nll", "nll_reference_scaled", "nll_scaled"}
    each = by["accuracy", "b"]
    assert (each["reference"], each["verdict"], each["splits"], each["pairs"]) == ("a", "better", 7, 350)
    assert each["p_splits"] == 2 / 2**7
    assert each["difference"] == pytest.approx(each["setting_mean"] - each["reference_mean"])
    for parts in found["decomposition"]:
        assert parts["accuracy_part"] + parts["explanation_part"] == pytest.approx(
            parts["difference"], abs=1e-9
        )
        assert parts["reference_accuracy"] * parts["reference_f1_given_right"] / 100 == pytest.approx(
            parts["reference_nbert"]
        )
    ranking = next(each for each in found["rankings"] if each["value"] == "accuracy")
    assert next(iter(ranking["mean_ranks"])) == "b"
    assert ranking["groups"][0] == ["b"]


def test_csv_and_markdown(caref: Caref, systems: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(caref("compare", *three(systems), "--format", "csv").out)))
    assert [row["setting"] for row in rows] == ["b", "c"] * 5
    out = caref("compare", *three(systems), "--format", "markdown").out
    assert "### 7 splits: compared with a\n\n| value | setting | a |" in out
    assert out.splitlines()[-1].startswith("- ")


def test_the_reference_may_be_another(caref: Caref, systems: Path) -> None:
    found = json.loads(caref("compare", *three(systems), "--against", "b", "--format", "json").out)
    assert [(each["reference"], each["setting"]) for each in found["comparisons"]][:2] == [
        ("b", "a"),
        ("b", "c"),
    ]
    assert found["comparisons"][0]["verdict"] == "worse"
    told = caref("compare", *three(systems), "--against", "d").mistake()
    assert told == "--against d: the settings are a, b, c"


def test_chosen_values(caref: Caref, systems: Path) -> None:
    found = json.loads(caref("compare", *three(systems), "--values", "accuracy", "--format", "json").out)
    assert {each["value"] for each in found["comparisons"]} == {"accuracy"}
    assert found["decomposition"] == []
    told = caref("compare", *three(systems), "--values", "rouge_l").mistake()
    assert told.startswith("no setting has a value 'rouge_l' per example; there are: correct, nbert, nll")


def test_a_smaller_difference_takes_more_splits(caref: Caref, systems: Path) -> None:
    def needed(*flags: str) -> float:
        found = json.loads(caref("compare", *three(systems)[:2], *flags, "--format", "json").out)
        return found["comparisons"][0]["splits_needed"]

    # To see half of it takes four times as many, but for the t distribution's few more.
    assert needed("--see", "0.5") == pytest.approx(4 * needed(), rel=0.01)
    assert (
        caref("compare", *three(systems), "--see", "0")
        .mistake()
        .startswith("--see must be a difference above 0")
    )


def test_one_split_alone(caref: Caref, systems: Path) -> None:
    ended = caref("compare", systems / "a" / "split0", systems / "b" / "split0")
    assert "1 split: compared with a/split0" in ended.out
    assert "undefined: one split" in ended.out
    assert "of the settings nothing can be said" in ended.out
    found = json.loads(caref("compare", systems / "a/split0", systems / "b/split0", "--format", "json").out)
    assert {each["verdict"] for each in found["comparisons"]} == {"undefined: one split"}
    assert {each["p_splits_note"] for each in found["comparisons"]} == {"one split"}


def test_unequal_splits(caref: Caref, systems: Path, tmp_path: Path) -> None:
    for name in "ab":
        shutil.copytree(systems / name, tmp_path / name)
    shutil.rmtree(tmp_path / "b" / "split3")
    told = caref("compare", tmp_path / "a", tmp_path / "b").mistake()
    assert told == "a and b: the splits differ: 1 in the first alone (named 'split3'); compare the same ones"
    out = caref("compare", tmp_path / "a", tmp_path / "b", "--common-splits").out
    assert "6 splits: compared with a" in out
    assert "1 split left out that a setting lacks." in out


def test_unequal_examples(caref: Caref, tmp_path: Path) -> None:
    write(tmp_path / "a", {"correct": [1.0, 0.0]})
    write(tmp_path / "b", {"correct": [1.0, 0.0, 1.0]})
    told = caref("compare", tmp_path / "a", tmp_path / "b").mistake()
    assert told.startswith(
        "a and b: the examples of split 'the only one' differ: 1 in the second alone (id '2')"
    )


def test_what_is_undefined_is_told(caref: Caref, tmp_path: Path) -> None:
    for name in "ab":
        for split in range(2):
            write(tmp_path / name / str(split), {"correct": [0.0] * 4, "nbert": [0.0] * 4, "nll": [None] * 4})
    out = caref("compare", tmp_path / "a", tmp_path / "b").out
    assert "undefined: no example has the value in both settings" in out
    assert "Effect size: undefined, the differences do not vary between splits." in out
    assert "P over splits: undefined, with 2 splits p is never below 0.5; 6 are needed." in out
    assert "NLL, b: 8 pairs left out, without the value in both settings." in out
    assert "Parts of nBERT, b: undefined, one of the two has no right answer" in out
    for row in json.loads(caref("compare", tmp_path / "a", tmp_path / "b", "--format", "json").out)[
        "comparisons"
    ]:
        assert row["effect_size"] is None


def test_runs(caref: Caref, runs: Path, tmp_path: Path) -> None:
    """A folder with two settings: real runs, and the same with all answers right."""
    for run in runs.iterdir():
        for name in ("ce", "caref"):
            shutil.copytree(run, tmp_path / name / run.name)
    for run in (tmp_path / "ce").iterdir():
        result = json.loads((run / "result.json").read_text())
        (run / "result.json").write_text(json.dumps({**result, "objective": "ce"}))
        rows = [json.loads(line) for line in (run / "scores.jsonl").read_text().splitlines()]
        lines = [json.dumps({**row, "correct": 1.0}) + "\n" for row in rows]
        (run / "scores.jsonl").write_text("".join(lines))
    out = caref("compare", tmp_path).out
    assert ", 2 splits: compared with caref" in out
    assert "│ accuracy │ ce " in out
    beside = json.loads(caref("compare", tmp_path / "ce", tmp_path / "caref", "--format", "json").out)
    assert beside["comparisons"][0]["reference_mean"] == 100.0
    told = caref("compare", tmp_path / "ce").mistake()
    assert told == "one setting alone, ce; give another folder, or one with several settings"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "nothing to compare; give folders of runs or evaluations, or --paper"),
        (["nowhere", "nowhere"], "there is no folder nowhere"),
        (["a", "--paper"], "give folders, --paper or --published, one of them"),
        (["--paper", "--published", "x.csv"], "give folders, --paper or --published, one of them"),
        (["--published", "nowhere.csv"], "cannot read nowhere.csv: No such file or directory"),
    ],
)
def test_mistakes(caref: Caref, arguments: list[str], told: str) -> None:
    assert caref("compare", *arguments).mistake() == told


def test_the_paper(caref: Caref) -> None:
    out = caref("compare", "--paper").out
    assert "caref_table1.csv: 31 bold numbers" in out
    assert "85.19 × 86.86 = 74.00" in out
    assert "The tests are unpaired" in out
    assert "Inconsistent: RQ3, comve, nbert: CAREF-AQ 87.29 is bold; the largest: LoRA R=4 87.78." in out
    found = json.loads(caref("compare", "--paper", "--format", "json").out)
    verdicts = [each["verdict"] for each in found["bold"]]
    survive = verdicts.count("survives")
    as_errors = sum(each["verdict_if_errors"] == "survives" for each in found["bold"])
    assert f"{survive} of 31 bold numbers survive if what stands after the ± is the deviation" in out
    assert f"over splits, {as_errors} if it is the standard error of the mean." in out
    assert len(found["factors"]) == 65
    rows = list(csv.DictReader(io.StringIO(caref("compare", "--paper", "--format", "csv").out)))
    assert [row["verdict"] for row in rows] == verdicts


def test_a_published_table_of_ones_own(caref: Caref, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(
        "block,model,task,value,mean,std,n,bold\n1,a,x,accuracy,80,1,60,1\n1,b,x,accuracy,79,,60,0\n"
    )
    out = caref("compare", "--published", path).out
    assert "undefined: no deviation" in out
    assert "×" not in out
    assert (
        "| 1 | x | accuracy | a 80.00 | b 79.00 | +1.00 | undefined |"
        in caref("compare", "--published", path, "--format", "markdown").out
    )


def test_words_and_cells() -> None:
    assert comparisons.counted(1, "split") == "1 split"
    assert comparison_cells.p_text(0.2) == "0.20"
