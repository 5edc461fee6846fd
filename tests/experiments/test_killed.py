"""A run that is killed at any moment never reads as complete, and the same command completes it."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from caref.cli import main
from caref.results.run_directory import RunDirectory, complete_runs, unfinished_runs

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals")

SCRIPT = Path(__file__).with_name("killing.py")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

SOME = ("training", "checkpoint half written", "predictions written", "result half written")
OTHERS = (
    "spec half written",
    "spec written",
    "checkpoint written",
    "history written",
    "adapter half written",
    "adapter written",
    "predictions half written",
    "scores written",
    "card written",
    "environment written",
)


def flags(settings: dict[str, Any], out: Path, **changes: Any) -> list[str]:
    words = ["run", "--out", str(out)]
    for name, value in {**settings, **changes}.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def fork(groups: Sequence[Sequence[dict[str, Any]]], folder: Path) -> list[int]:
    """Exit codes of processes; see killing.py."""
    (folder / "groups.json").write_text(json.dumps(groups))
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder / "groups.json")],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=250,
        check=True,
    )
    return json.loads(done.stdout)


def only_run(out: Path) -> RunDirectory:
    (directory,) = (RunDirectory(path) for path in out.iterdir())
    return directory


def answers(directory: RunDirectory) -> bytes:
    assert directory.is_complete
    return directory.predictions_path.read_bytes()


@pytest.mark.parametrize(
    "killed", [SOME, pytest.param(OTHERS, marks=pytest.mark.slow)], ids=["some", "others"]
)
def test_killed_at_a_moment(
    settings: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str], killed: tuple[str, ...]
) -> None:
    """Kills, looks, resumes, compares. With checkpoints, so that those are half written too."""
    changes = {"checkpoint_epochs": 1, "epochs": 3, "metrics": "accuracy"}
    settings = {name: value for name, value in settings.items() if name != "encoder"}
    outs = {moment: tmp_path / moment.replace(" ", "_") for moment in ("never", *killed, "interrupt")}
    left = {moment: tmp_path / f"{out.name}_left" for moment, out in outs.items()}

    def case(of: str, **more: Any) -> list[dict[str, Any]]:
        words = flags(settings, outs[of], **changes)
        return [{"arguments": words, "moment": None, "log": str(tmp_path / f"{outs[of].name}.log"), **more}]

    groups = [case("never")]
    for moment in (*killed, "interrupt"):
        log, copy = str(left[moment].with_suffix(".log")), [str(outs[moment]), str(left[moment])]
        groups += [case(moment, moment=moment, log=log, keep=copy), case(moment)]
    codes = fork(groups, tmp_path)
    assert codes[0] == 0
    expected = answers(only_run(outs["never"]))
    for moment, code in zip((*killed, "interrupt"), codes[1::2], strict=True):
        assert code == (130 if moment == "interrupt" else -signal.SIGKILL), moment
        assert not only_run(left[moment]).result_path.exists(), moment
        assert list(complete_runs(left[moment])) == []
        begun = 0 if moment == "spec half written" else 1
        assert len(list(unfinished_runs(left[moment]))) == begun, moment
    for moment, code in zip((*killed, "interrupt"), codes[2::2], strict=True):
        assert code == 0, moment
        directory = only_run(outs[moment])
        assert answers(directory) == expected, moment
        assert not list(directory.path.rglob("*.tmp")), moment
        assert not directory.checkpoints_path.exists(), moment

    log = left["interrupt"].with_suffix(".log").read_text()
    assert log.endswith("\nstopped; the same command again goes on from here\n")
    assert "Traceback" not in log
    if "checkpoint half written" in killed:
        half = only_run(left["checkpoint half written"]).checkpoints_path
        assert {path.name: (path / "trainer_state.json").exists() for path in half.iterdir()} == {
            "checkpoint-2": True,
            "checkpoint-4": False,
        }
    with pytest.raises(SystemExit) as ended:
        main(["table", str(left[killed[-1]])])
    told = capfd.readouterr()
    assert ended.value.code == 0
    assert told.out == "no complete run\n"
    assert told.err == "unfinished and not in the table: 1; the same command again completes them\n"


@pytest.mark.slow
def test_killed_when_complete(settings: dict[str, Any], tmp_path: Path) -> None:
    log = tmp_path / "again.log"
    case = {"arguments": flags(settings, tmp_path / "runs"), "moment": "result written", "log": os.devnull}
    codes = fork([[case], [{**case, "moment": None, "log": str(log)}]], tmp_path)
    assert codes == [-signal.SIGKILL, 0]
    assert "1 of 1 runs are complete already" in log.read_text()


@pytest.mark.slow
def test_two_at_once(settings: dict[str, Any], tmp_path: Path) -> None:
    """Each process does the run, or is told in one line that another one is at it."""
    out = tmp_path / "runs"
    cases = [
        {"arguments": flags(settings, out), "moment": None, "log": str(tmp_path / f"{n}.log")}
        for n in range(2)
    ]
    alone = {**cases[0], "arguments": flags(settings, tmp_path / "alone"), "log": os.devnull}
    codes = fork([cases, [alone]], tmp_path)
    assert set(codes) <= {0, 2}
    assert 0 in codes[:2]
    for n, code in enumerate(codes[:2]):
        log = (tmp_path / f"{n}.log").read_text()
        assert "Traceback" not in log
        if code == 2:
            assert re.search(r"\ncaref: another process is at work in .*; wait for it or stop it\n$", log)
    assert answers(only_run(out)) == answers(only_run(tmp_path / "alone"))


@pytest.mark.slow
def test_killed_at_random_moments(settings: dict[str, Any], tmp_path: Path) -> None:
    """By the clock, again and again, until the run is complete."""
    uninterrupted, out = tmp_path / "uninterrupted", tmp_path / "runs"
    command = [sys.executable, "-m", "caref"]
    changes = {"epochs": 60, "checkpoint_epochs": 3}

    def begin(folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*command, *flags(settings, folder, **changes)],
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    began = time.monotonic()
    assert begin(uninterrupted).wait() == 0
    takes = time.monotonic() - began
    moments = random.Random(0)
    killed = 0
    for _ in range(12):
        process = begin(out)
        try:
            assert process.wait(timeout=moments.uniform(0.3, 0.8) * takes) == 0
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
        for directory in (RunDirectory(path) for path in out.glob("*")):
            if directory.is_complete:
                directory.read_result()
                assert answers(directory) == answers(only_run(uninterrupted))
    else:
        assert begin(out).wait() == 0
    assert killed
    assert answers(only_run(out)) == answers(only_run(uninterrupted))
