from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caref.cli.listing import KINDS
from caref.losses import OBJECTIVES
from caref.methods import METHODS
from caref.metrics import METRICS
from caref.tasks import TASKS
from caref.training.settings import PRESETS

Caref = Callable[..., Any]
NAMES = {
    "tasks": TASKS,
    "methods": METHODS,
    "objectives": OBJECTIVES,
    "metrics": METRICS,
    "presets": PRESETS,
}


@pytest.mark.parametrize("kind", KINDS)
def test_list(caref: Caref, kind: str) -> None:
    ended = caref("list", kind)
    assert (ended.code, ended.err) == (0, "")
    head, *lines = ended.out.splitlines()
    assert head == kind
    assert [line.split()[0] for line in lines] == list(NAMES[kind])
    assert all(len(line.split()) > 1 and "`" not in line for line in lines)


def test_list_all(caref: Caref) -> None:
    out = caref("list").out.splitlines()
    assert [line for line in out if not line.startswith(" ")] == list(KINDS)
    told = caref("list", "model").mistake()
    assert told == "unknown kind 'model'; there are: tasks, methods, objectives, metrics, presets"


# --- params -----------------------------------------------------------------------------------------


def test_params(caref: Caref, tiny_t5: Path) -> None:
    ended = caref("params", tiny_t5)
    assert (ended.code, ended.err) == (0, "")
    assert all(f"│ {name} " in ended.out for name in METHODS)
    from_config = caref("params", tiny_t5 / "config.json")
    assert from_config.out == ended.out
    one = caref("params", tiny_t5, "--method", "lora", "--rank", 2).out
    assert "rank 2" in one and "│ aq " not in one


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["./nowhere"], "no model at ./nowhere: the path does not exist"),
        (["nobody/nothing"], "cannot load 'nobody/nothing'"),
        (["MODEL", "--method", "lroa"], "unknown method 'lroa'; did you mean 'lora'?"),
        (["MODEL", "--target-modules", "("], "'(' is not a regular expression"),
        (["MODEL", "--target-modules", "zz"], "'zz' matches no module of this t5 model"),
    ],
)
def test_params_with_a_mistake(caref: Caref, tiny_t5: Path, arguments: list[str], told: str) -> None:
    words = [str(tiny_t5) if word == "MODEL" else word for word in arguments]
    assert told in caref("params", *words).mistake()


def test_params_of_a_model_that_is_none(caref: Caref, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    assert "cannot load" in caref("params", tmp_path).mistake()
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    assert "'bert' is not an encoder-decoder model" in caref("params", tmp_path).mistake()


# --- data -------------------------------------------------------------------------------------------

FOLDERS = [
    ("esnli", "esnli"),
    ("ecqa", "ecqa"),
    ("comve", "comve"),
    ("cos_e", "cos_e/v1.0"),
    ("cos_e_v1.11", "cos_e/v1.11"),
]


@pytest.mark.parametrize(("task", "folder"), FOLDERS)
def test_data_check_and_show(caref: Caref, samples: Path, task: str, folder: str) -> None:
    checked = caref("data", "check", task, "--data", samples / folder)
    assert (checked.code, checked.err) == (0, "")
    assert "│ train" in checked.out and "│ validation" in checked.out
    shown = caref("data", "show", task, "--data", samples / folder, "--count", 2, "--part", "train")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert len([line for line in lines if not line.startswith(" ")]) == 2
    for name in ("input", "target", "candidates", "reference"):
        assert any(line.startswith(f"  {name} ") for line in lines)


def test_an_input_of_several_lines_stays_in_its_column(caref: Caref, samples: Path) -> None:
    shown = caref(
        "data", "show", "esnli", "--data", samples / "esnli", "--prompt", "instruction", "--count", 1
    )
    rest = shown.out.splitlines()[1:]
    assert all(line.startswith("  ") for line in rest)
    assert any(line.startswith(" " * 14 + "Premise:") for line in rest)


def test_your_own_data(caref: Caref, own_data: Path) -> None:
    checked = caref("data", "check", own_data / "red.yaml")
    assert "│ train      │ files  │ no 8, yes 8 │       16 │" in checked.out
    shown = caref("data", "show", own_data / "red.yaml", "--prompt", own_data / "short.yaml", "--count", 1)
    assert "  input       is the friend red?\n" in shown.out


def test_bad_rows_are_named_or_counted(caref: Caref, own_data: Path, tmp_path: Path) -> None:
    shutil.copytree(own_data, tmp_path / "data")
    bad = tmp_path / "data" / "red_dev.jsonl"
    bad.write_text(bad.read_text() + "nonsense\n")
    ended = caref("data", "check", tmp_path / "data" / "red.yaml")
    assert ended.code == 2
    assert f"{bad}:9" in ended.err
    ended = caref("data", "check", tmp_path / "data" / "red.yaml", "--skip-bad-rows")
    assert ended.code == 0
    assert f"{bad}:9" in ended.err
    assert ended.out.splitlines()[-2].endswith("│        1 │")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["check", "esnil"], "unknown task 'esnil'; did you mean 'esnli'?"),
        (["check", "esnli"], "cannot read esnli/esnli from the hub"),
        (["check", "esnli", "--data", "nowhere"], "no data folder nowhere"),
        (
            ["check", "esnli", "--data", "SAMPLES/esnli", "--data-format", "x"],
            "has no data format 'x'; there are:",
        ),
        (
            ["show", "esnli", "--data", "SAMPLES/esnli", "--part", "dev"],
            "unknown part 'dev'; there are: train",
        ),
        (["show", "esnli", "--data", "SAMPLES/esnli", "--part", "test", "--split", "1"], "not from test"),
        (["show", "esnli", "--data", "SAMPLES/esnli", "--split", "60"], "there is no split 60"),
        (["show", "esnli", "--data", "SAMPLES/esnli", "--prompt", "fbe"], "has no prompt 'fbe'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_data_with_a_mistake(caref: Caref, samples: Path, arguments: list[str], told: str) -> None:
    words = [word.replace("SAMPLES", str(samples)) for word in arguments]
    assert told in caref("data", *words).mistake()


def test_files_that_are_not_there_are_named(caref: Caref, tmp_path: Path) -> None:
    ended = caref("data", "check", "esnli", "--data", tmp_path)
    assert ended.code == 2
    assert "no train part of esnli in" in ended.err
    assert "Expected one of:" in ended.err
