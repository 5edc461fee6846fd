"""``caref run`` as a new user meets it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import caref as package

Caref = Callable[..., Any]


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_it_says_what_it_does_and_where_it_wrote(caref: Caref, small: list[str], tmp_path: Path) -> None:
    out = tmp_path / "runs"
    ended = caref("run", *small, "--splits", "0,2", "--out", out)
    assert ended.code == 0
    assert (
        ended.out.splitlines()[-1] == f"written to {out}; to see the table of all its runs: caref table {out}"
    )
    assert "accuracy %" in ended.out and "│      2 │" in ended.out
    lines = ended.err.splitlines()
    assert lines[0] == "reading data, model and metrics"
    assert re.fullmatch(r"run 1 of 2: red_tiny-t5_aq_caref_seed7004_\w{16}", lines[1])
    assert re.fullmatch(r"  training 1/4, .* left", lines[2])
    assert lines[5].startswith("  done in ") and lines[-1].endswith(", 0 s left")

    # The same command again does nothing; with one split more, only that.
    before = {path: path.stat().st_mtime_ns for path in files(out)}
    ended = caref("run", *small, "--splits", "0,2", "--out", out)
    assert ended.err == "2 of 2 runs are complete already\n"
    assert "│      2 │" in ended.out
    ended = caref("run", *small, "--splits", "0-2", "--out", out)
    assert "2 of 3 runs are complete already\nrun 1 of 1: red_tiny-t5_aq_caref_seed3639_" in ended.err
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_file_of_settings(caref: Caref, small: list[str], own_data: Path, tmp_path: Path) -> None:
    """A file and flags give the same run; flags win."""
    names = [flag.removeprefix("--") for flag in small[::2]]
    content = dict(zip(names, small[1::2], strict=True)) | {
        "seeds": [5],
        "out": str(tmp_path / "runs"),
        "eval_batch_size": 2,
        "save_adapter": False,
        "fused": False,  # what YAML makes of off
        "learning-rate": "1e-3",
        "epochs": 9,
    }
    config = tmp_path / "run.yaml"
    config.write_text(yaml.safe_dump(content))
    assert caref("run", "--config", config, "--epochs", 2).code == 0
    (run,) = (tmp_path / "runs").iterdir()
    assert not (run / "adapter").exists()
    assert '"objective_computed_by": "eager"' in (run / "environment.json").read_text()
    by_flag = caref("run", *small, "--seeds", 5, "--learning-rate", "0.001", "--out", tmp_path / "runs")
    assert by_flag.err == "1 of 1 runs are complete already\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("task: [", "is not YAML"),
        ("- task", "must hold settings by name, such as 'task: esnli'"),
        ("tsak: esnli", "unknown setting 'tsak'; did you mean 'task'? See: caref run --help"),
        ("{task: esnli, model: m, seed: 3}", "seed is the setting of one run; write seeds: [3]"),
        ("{task: esnli, model: m, splits: 1, seeds: 1}", "give either splits (FEB's) or seeds (your own)"),
        ("{task: esnli, model: m, splits: 60}", "there is no split 60"),
        ("{task: esnli, model: m, trust_remote_code: true}", "it is taken as a flag only"),
        (
            "{task: esnli, model: m, eval_batch_size: 0}",
            "eval_batch_size must be a whole number from 1, got 0",
        ),
        ("{task: esnli, model: m, save_adapter: 1}", "save_adapter must be true or false, got 1"),
        ("{task: esnli, model: m, fused: true}", "fused must be one of auto, off"),
        ("{task: esnli, model: m, out: 3}", "out must be a folder, got 3"),
        ("{task: esnli, model: m, epochs: many}", "epochs: Input should be a valid number"),
        ("{task: esnli, model: m, method: [aq]}", "method: Input should be a valid string"),
    ],
)
def test_a_file_of_settings_with_a_mistake(caref: Caref, tmp_path: Path, content: str, told: str) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(content)
    assert told in caref("run", "--config", config).mistake()


def test_a_file_of_settings_that_is_not_there(caref: Caref, tmp_path: Path) -> None:
    assert (
        caref("run", "--config", tmp_path / "no.yaml").mistake()
        == f"{tmp_path}/no.yaml: No such file or directory"
    )


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--task", "esnil"], "unknown task 'esnil'; did you mean 'esnli'? See: caref list tasks"),
        (["--task", "nowhere.yaml"], "cannot read nowhere.yaml: No such file"),
        (["--task", "esnli", "--data", "nowhere"], "no data folder nowhere"),
        (["--task", "esnli"], "cannot read esnli/esnli from the hub"),
        (["--model", "./nowhere"], "no model at ./nowhere: the path does not exist"),
        (["--model", "nobody/nothing"], "cannot load 'nobody/nothing'"),
        (["--method", "qa"], "unknown method 'qa'; did you mean 'aq'?"),
        (["--objective", "ce", "--alpha", "2"], "'alpha' is not a setting of the objective 'ce'"),
        (["--alpha", "0.5"], "alpha must be a finite number of at least 1, got 0.5"),
        (["--metrics", "accuracy,nbert", "--encoder", "roberta-large"], "encoder 'roberta-large' is neither"),
        (["--metrics", "acuracy"], "unknown metric 'acuracy'; did you mean 'accuracy'?"),
        (["--prompt", "fbe"], "has no prompt 'fbe'; it has: feb, instruction, chat"),
        (["--preset", "papers"], "unknown preset 'papers'; there are: fewshot, paper, feb"),
        (["--splits", "60"], "there is no split 60; splits are 0 to 59"),
        (["--splits", "x"], "splits must be numbers and ranges such as 0-4,7"),
        (["--splits", ""], "splits must be numbers and ranges such as 0-4,7"),
        (["--seeds", "1,a"], "seeds must be whole numbers from 0, separated by commas, got '1,a'"),
        (["--seeds", "4294967296"], "seed: Input should be less than 4294967296"),
        (["--splits", "1", "--seeds", "1"], "give either splits (FEB's) or seeds (your own), not both"),
        (["--fused", "on"], "fused must be one of auto, off, chunked, compiled, triton, got 'on'"),
        (["--objective", "focal", "--fused", "chunked"], "FocalObjective has no fused kernel"),
        (["--report-to", "tensorbord"], "unknown reporter 'tensorbord'; there are:"),
        (["--shots", "7"], "shots must be a positive multiple of 2, the number of labels, got 7; try 6 or 8"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_line_and_writes_nothing(
    caref: Caref,
    small: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = dict(zip(small[::2], small[1::2], strict=True)) | dict(zip(flags[::2], flags[1::2], strict=True))
    ended = caref("run", *(word for pair in given.items() for word in pair))
    assert told in ended.mistake()
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_that_cannot_be_written(caref: Caref, small: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = caref("run", *small, "--out", tmp_path / "file")
    assert ended.code == 2
    assert re.search(r"\ncaref: cannot write to .*: Not a directory; choose another --out\n$", ended.err)


def test_a_corrupt_data_file_is_named_with_its_line(
    caref: Caref, small: list[str], own_data: Path, tmp_path: Path
) -> None:
    shutil.copytree(own_data, tmp_path / "data")
    bad = tmp_path / "data" / "red_train.jsonl"
    lines = bad.read_text().splitlines()
    lines[4] = lines[4][:30]
    bad.write_text("\n".join(lines))
    ended = caref("run", *small, "--task", tmp_path / "data" / "red.yaml", "--out", tmp_path / "runs")
    assert ended.code == 2
    assert "red_train.jsonl:5" in ended.err
    assert not (tmp_path / "runs").exists()


def test_a_run_that_another_process_is_at(caref: Caref, small: list[str], runs: Path, tmp_path: Path) -> None:
    from caref.results.run_directory import RunDirectory

    shutil.copytree(runs, tmp_path / "runs")
    for run in (tmp_path / "runs").iterdir():
        (run / "result.json").unlink()
    first = next(path for path in (tmp_path / "runs").iterdir() if "seed7004" in path.name)
    before = {path: path.stat().st_mtime_ns for path in files(first)}
    with RunDirectory(first).claimed():
        ended = caref("run", *small, "--splits", "0-1", "--out", tmp_path / "runs")
    assert ended.code == 2
    assert (
        ended.err.splitlines()[-1] == f"caref: another process is at work in {first}; wait for it or stop it"
    )
    after = {path: path.stat().st_mtime_ns for path in files(first)}
    assert {path: time for path, time in after.items() if path.name != ".lock"} == {
        path: time for path, time in before.items() if path.name != ".lock"
    }


@dataclass(frozen=True)
class OnATerminal:
    """What a run in a process, a home and a working folder of its own left and showed."""

    place: Path
    elsewhere: tuple[list[Path], list[Path]]
    lines: list[str]


@pytest.fixture(scope="module")
def on_a_terminal(small: list[str], tmp_path_factory: pytest.TempPathFactory) -> OnATerminal:
    pty = pytest.importorskip("pty", reason="no pseudo-terminals")
    place = tmp_path_factory.mktemp("place")
    for name in ("home", "work"):
        (place / name).mkdir()
    given = dict(zip(small[::2], small[1::2], strict=True))
    watched = [Path(given["--model"]), Path(given["--task"]).parent, Path(package.__file__).parent]
    own = {"HF_HOME": "hf", "XDG_CACHE_HOME": "cache", "HOME": "."}
    before = [path for folder in watched for path in files(folder) if path.suffix != ".pyc"]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "caref", "run", *small, "--epochs", "6", "--out", "out"],
        cwd=place / "work",
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={
            **os.environ,
            **{name: str(place / "home" / folder) for name, folder in own.items()},
            "TMPDIR": str(place),
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "COLUMNS": "80",
            "TERM": "xterm",
        },
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    assert process.wait(timeout=60) == 0, shown.decode()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    after = [path for folder in watched for path in files(folder) if path.suffix != ".pyc"]
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    return OnATerminal(place, (sorted(before), sorted(after)), lines)


def test_nothing_is_written_elsewhere(on_a_terminal: OnATerminal) -> None:
    """Not in the working folder, not at home, not beside the data or the model, not in caref itself."""
    place = on_a_terminal.place
    assert on_a_terminal.elsewhere[0] == on_a_terminal.elsewhere[1]
    assert [path.name for path in (place / "work").iterdir()] == ["out"]
    assert sorted(path.name for path in place.iterdir()) == ["home", "work"]
    cached = [path.relative_to(place / "home").as_posix() for path in files(place / "home")]
    assert [path for path in cached if not path.startswith(("hf/", "cache/"))] == []
    (run,) = (place / "work" / "out").iterdir()
    assert str(place) not in (run / "environment.json").read_text()


def test_a_bar_with_the_time_left(on_a_terminal: OnATerminal) -> None:
    """It moves, the time left is plausible, it fits 80 columns, and the last line is the path."""
    lines = on_a_terminal.lines
    assert max(map(len, lines)) <= 80
    assert any(re.search(r"training \d+/12 .* run 1 of 1 .*\d+ s left", line) for line in lines)
    assert any(re.search(r"done .* run 1 of 1 .* 0 s left", line) for line in lines)
    assert lines[-1] == "written to out; to see the table of all its runs: caref table out"
    assert not any("Warning" in line for line in lines)
