from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from caref.cli import tables
from caref.cli.tables import cell_text, print_rows
from caref.results.table import Cell, Row

Caref = Callable[..., Any]


def test_text(caref: Caref, runs: Path) -> None:
    ended = caref("table", runs)
    assert (ended.code, ended.err) == (0, "")
    assert "│ red  │ tiny-t5 │ aq     │ caref     │      2 │" in ended.out
    assert "nBERT" not in ended.out  # not computed in these runs, so not "undefined"


def test_csv_and_json_parse_and_agree(caref: Caref, runs: Path) -> None:
    (row,) = csv.DictReader(io.StringIO(caref("table", runs, "--format", "csv").out))
    (record,) = json.loads(caref("table", runs, "--format", "json").out)
    assert {name: "" if value is None else str(value) for name, value in record.items()} == row
    assert (record["task"], record["splits"], record["accuracy_n"]) == ("red", 2, 2)


def test_columns(caref: Caref, runs: Path) -> None:
    (record,) = json.loads(caref("table", runs, "--columns", "broken_count, n", "--format", "json").out)
    assert record["n_mean"] == 6.0
    assert "accuracy_mean" not in record
    told = caref("table", runs, "--columns", "acuracy").mistake()
    assert told.startswith("no run has a value 'acuracy'; there are: accuracy, broken")


def test_an_empty_folder(caref: Caref, tmp_path: Path) -> None:
    ended = caref("table", tmp_path)
    assert (ended.code, ended.out, ended.err) == (0, "no complete run\n", "")
    assert json.loads(caref("table", tmp_path, "--format", "json").out) == []
    assert caref("table", tmp_path, "--format", "csv").out == ""


def test_no_folder(caref: Caref, tmp_path: Path) -> None:
    told = caref("table", tmp_path / "nowhere").mistake()
    assert told == f"no folder of runs at {tmp_path}/nowhere; caref run --out {tmp_path}/nowhere makes one"


def test_unfinished_runs_are_counted_and_not_read(caref: Caref, runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs, tmp_path / "runs")
    first = sorted((tmp_path / "runs").iterdir())[0]
    (first / "result.json").unlink()
    (first / "predictions.jsonl").write_text("half")
    for output in ("text", "csv", "json"):
        ended = caref("table", tmp_path / "runs", "--format", output)
        assert ended.code == 0
        assert ended.err == "unfinished and not in the table: 1; the same command again completes them\n"
    assert json.loads(ended.out)[0]["splits"] == 1


def test_a_damaged_run_is_named(caref: Caref, runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs, tmp_path / "runs")
    first = sorted((tmp_path / "runs").iterdir())[0]
    (first / "result.json").write_text("{}")
    assert f"{first}/result.json: not a run result" in caref("table", tmp_path / "runs").mistake()


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (Cell(None, None, 0), "undefined"),
        (Cell(50.0, None, 1), "50.00"),
        (Cell(50.0, 1.234, 2), "50.00 ± 1.23"),
        (Cell(0.0, 0.0, 2), "0.00 ± 0.00"),
        (Cell(0.0123, 0.001, 2), "0.0123 ± 0.0010"),
        (Cell(0.1234, 0.02, 2), "0.1234 ± 0.0200"),
    ],
)
def test_cells(cell: Cell, shown: str) -> None:
    assert cell_text(cell) == shown


def row(**changes: Any) -> Row:
    group = {"task": "esnli", "model": "[bold]m", "method": "aq", "objective": "caref", "setting": ""}
    group |= {"supervision": "answer_and_explanation", "prompt": "feb"}
    cells = {
        "accuracy": Cell(61.0, 2.0, 3),
        "f1_given_right": Cell(None, None, 0),
        "nbert": Cell(50.0, 1.0, 3),
    }
    return Row(**{"group": group, "splits": 3, "cells": cells, "encoder": "tiny", **changes})


def printed(rows: list[Row], width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    text = io.StringIO()
    monkeypatch.setattr(tables, "console", lambda: Console(file=text, width=width, highlight=False))
    print_rows(rows)
    return text.getvalue()


def test_a_narrow_terminal_gets_blocks_and_no_cut_number(monkeypatch: pytest.MonkeyPatch) -> None:
    wide, narrow = (printed([row(), row()], width, monkeypatch) for width in (140, 80))
    assert "│ esnli │ [bold]m │ aq     │ caref     │      3 │ 61.00 ± 2.00 │" in wide
    assert "accuracy %        61.00 ± 2.00\nF1 given right %  undefined\n" in narrow
    assert "model             [bold]m\n" in narrow
    assert max(map(len, narrow.splitlines())) <= 80
    for text in (wide, narrow):
        assert "…" not in text
        assert "F1 and nBERT by tiny" in text


def test_warnings_and_tasks_seen_in_pretraining_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    warned = row(warnings=("3 of 9 inputs lost the end of their context (--max-input-tokens)",))
    warned.group["model"] = "flan-t5-large"
    text = printed([warned], 160, monkeypatch)
    assert "esnli flan-t5-large aq caref: 3 of 9 inputs lost the end" in text
    assert "not unseen tasks" in text


def test_differing_settings_get_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(), row()]
    rows[0].group["setting"], rows[1].group["setting"] = "aaaa", "bbbb"
    text = printed(rows, 160, monkeypatch)
    assert "setting" in text and "aaaa" in text and "bbbb" in text
    assert "prompt" not in text


def test_costs(caref: Caref, runs: Path) -> None:
    (row,) = json.loads(caref("table", runs, "--costs", "--format", "json").out)
    for name in ("trainable_percent", "seconds", "peak_mib", "saved_mib"):
        assert row[f"{name}_n"] == 2
        assert row[f"{name}_mean"] > 0
    stored = [file.stat().st_size for file in runs.glob("*/adapter/*.safetensors")]
    assert row["saved_mib_mean"] == pytest.approx(sum(stored) / 2 / 2**20)
    (plain,) = json.loads(caref("table", runs, "--format", "json").out)
    assert not any("mib" in name for name in plain)


def test_markdown(caref: Caref, runs: Path) -> None:
    headings, rule, row = caref("table", runs, "--costs", "--format", "markdown").out.splitlines()
    assert headings.startswith("| task | model | method | objective | splits | accuracy % |")
    assert headings.endswith("| trained % | seconds | peak MiB | saved MiB |")
    assert set(rule) == set("| -:")
    assert row.count("|") == headings.count("|")
