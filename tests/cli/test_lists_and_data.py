from __future__ import annotations

import importlib
import json
import shutil
import sys
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


@pytest.mark.usefixtures("parity")
def test_list_a_generated_task(caref: Caref) -> None:
    told = caref("list", "tasks").out.splitlines()[-1]
    assert told.split(maxsplit=1) == ["parity", "no, yes; generated; settings: size, asked, noise; CC0"]


# --- params -----------------------------------------------------------------------------------------


def test_params(caref: Caref, tiny_t5: Path) -> None:
    ended = caref("params", tiny_t5)
    assert (ended.code, ended.err) == (0, "")
    assert all((f"│ {name} " in ended.out) == (name != "peft") for name in METHODS)
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
    assert any(line.startswith(" " * 15 + "Premise:") for line in rest)


def test_your_own_data(caref: Caref, own_data: Path) -> None:
    checked = caref("data", "check", own_data / "red.yaml")
    assert "│ train      │ files  │ no 8, yes 8 │       16 │" in checked.out
    shown = caref("data", "show", own_data / "red.yaml", "--prompt", own_data / "short.yaml", "--count", 1)
    assert "  input        is the friend red?\n" in shown.out


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


# --- a task with settings ---------------------------------------------------------------------------

NO_SETTING = "'size' is not a setting of the task 'esnli'; it has: none"
NO_FOLDER = "parity is generated; pass no data folder"


@pytest.fixture
def flags_of_parity(monkeypatch: pytest.MonkeyPatch, parity: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Commands are imported anew, with the flags of the task `parity` as if a package had brought it."""
    for name in ("caref.cli.data", "caref.cli.run"):
        importlib.import_module(name)  # so that what was there is put back
        monkeypatch.delitem(sys.modules, name)
    return parity


def test_a_tasks_settings_are_flags(caref: Caref, flags_of_parity: list[tuple[str, int]]) -> None:
    ended = caref("data", "show", "parity", "--size", 6, "--asked", "odd", "--count", 2)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[:3] == ["6", "  input        is 6 odd?", "  target       no because it is 6"]
    assert [line for line in lines if not line.startswith(" ")] == ["6", "7"]
    assert flags_of_parity == [("validation", 6)]
    checked = caref("data", "check", "parity", "--size", 6)
    assert checked.code == 0
    assert "│ train      │ generated │ no 3, yes 3 │        6 │" in checked.out
    drawn = caref("data", "show", "parity", "--size", 1000, "--split", 1, "--count", 1)
    assert (drawn.code, drawn.err) == (0, "")


def test_every_command_that_reads_data_has_them(
    caref: Caref, monkeypatch: pytest.MonkeyPatch, flags_of_parity: list[tuple[str, int]]
) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 200)
    for page in (("run",), ("data", "check"), ("data", "show")):
        told = caref(*page, "--help").out
        assert "─ Task ─" in told
        (line,) = [line for line in told.splitlines() if " --size " in line]
        assert "How many numbers are in each part. Only for: parity. Default: 40." in line
    assert "--alpha" not in caref("data", "show", "--help").out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["data", "show", "parity", "--siez", "6"], "No such option: --siez"),
        (["data", "show", "parity", "--asked", "prime"], "Invalid value for '--asked'"),
        (["data", "show", "parity", "--size", "1"], "size must be at least 2, got 1"),
        (["data", "check", "parity", "--size", "1"], "size must be at least 2, got 1"),
        (["data", "check", "parity", "--data", "."], NO_FOLDER),
        (["data", "check", "esnli", "--size", "6"], NO_SETTING),
        (["data", "show", "esnli", "--size", "6"], NO_SETTING),
        (["run", "--task", "esnli", "--model", "m", "--size", "6"], NO_SETTING),
        (["run", "--task", "parity", "--model", "m", "--data", "."], NO_FOLDER),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_setting_of_a_task(
    caref: Caref, flags_of_parity: list[tuple[str, int]], arguments: list[str], told: str
) -> None:
    assert told in caref(*arguments).mistake()
    assert flags_of_parity == []


def test_run_and_predict_with_a_tasks_settings(
    caref: Caref, flags_of_parity: list[tuple[str, int]], tiny_t5: Path, tmp_path: Path
) -> None:
    out = tmp_path / "runs"
    (tmp_path / "run.yaml").write_text("{task: parity, size: 30, asked: odd, epochs: 1, shots: 4}")
    ended = caref(
        "run", "--config", tmp_path / "run.yaml", "--model", tiny_t5, "--metrics", "accuracy", "--size", 20,
        "--eval-size", 4, "--max-new-tokens", 4, "--out", out,
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert flags_of_parity == [("train", 20), ("validation", 20)]
    (run,) = out.iterdir()
    spec = json.loads((run / "spec.json").read_text())
    assert spec["task_settings"] == {"size": 20, "asked": "odd", "noise": None}
    question = tmp_path / "questions.jsonl"
    question.write_text('{"number": "3", "asked": "odd"}\n')
    answered = caref("predict", run, "--file", question)
    assert answered.code == 0, answered.err
    assert json.loads(answered.out)["input"] == "is 3 odd?"


# --- the starter world ------------------------------------------------------------------------------


def test_show_starter_says_what_to_type(caref: Caref) -> None:
    ended = caref("data", "show", "starter")
    assert (ended.code, ended.err) == (0, "")
    assert "caref data world" in ended.out
    assert all(name in ended.out for name in TASKS if name.startswith("starter_"))


def test_show_ground_truth(caref: Caref) -> None:
    from caref.tasks import get_task

    example = get_task("starter_choice3", {"cue_strength": 1.0}).load(None, "train").examples[0]
    assert example.truth and example.truth.cue
    flags = ("--count", 1, "--part", "train", "--cue-strength", 1)
    lines = [
        " ".join(line.split()) for line in caref("data", "show", "starter_choice3", *flags).out.splitlines()
    ]
    right, *wrong = example.truth.facts
    assert f"causes question: {example.truth.causes[0].text} | choices: {example.answer}" in lines
    assert f"fact {right.thing} | {right.relation} | {right.value}" in lines
    for fact in wrong:
        assert f"false {fact.thing} | {fact.relation} | {fact.value}" in lines
    assert f"cue question: {example.truth.cue.text}" in lines
    assert any(line.startswith("distractors choices: ") for line in lines)
    lines = caref("data", "show", "starter_choice3", "--count", 1).out.splitlines()
    assert not any(line.split()[0] == "cue" for line in lines)


def test_cue_strength_out_of_range(caref: Caref) -> None:
    told = caref("data", "show", "starter_nli", "--cue-strength", 2).mistake()
    assert told == "cue_strength must lie between 0 and 1, got 2.0"


def test_world(caref: Caref) -> None:
    ended = caref("data", "world")
    assert (ended.code, ended.err) == (0, "")
    assert "a penguin cannot fly" in ended.out and "what is {a} like?" in ended.out
    assert caref("data", "world", "--thing", "owl").out.splitlines()[0] == "bird: a bird"
    birds = caref("data", "world", "--kind", "bird").out.splitlines()
    assert len(birds) == 10 and "{a}" not in "".join(birds)
    assert (
        caref("data", "world", "--kind", "brid")
        .mistake()
        .startswith("unknown kind 'brid'; there are: animal, ")
    )
    assert (
        caref("data", "world", "--thing", "owls").mistake() == "unknown thing 'owls'; see: caref data world"
    )
