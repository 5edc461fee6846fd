from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from caref.errors import CarefError, DataError
from caref.generation.prediction import Prediction
from caref.results.result import RunResult
from caref.results.run_directory import RunDirectory, complete_runs, unfinished_runs

STALE = ("predictions.jsonl", "scores.jsonl", "history.jsonl", "environment.json", ".result.json.12.tmp")


def begun(path: Path) -> RunDirectory:
    directory = RunDirectory(path)
    directory.start({"task": "esnli"})
    return directory


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_start_clears_what_is_stale_and_keeps_whole_checkpoints(tmp_path: Path) -> None:
    directory = begun(tmp_path / "run")
    for name in STALE:
        (directory.path / name).write_text("half")
    for folder in (directory.adapter_path, directory.model_path):
        folder.mkdir()
        (folder / "model.safetensors").write_text("half")
    whole, half, torn = (directory.checkpoints_path / f"checkpoint-{step}" for step in (2, 4, 6))
    for checkpoint in (whole, half, torn):
        checkpoint.mkdir(parents=True)
        (checkpoint / "adapter_model.safetensors").write_text("weights")
    (whole / "trainer_state.json").write_text("{}")
    (torn / "trainer_state.json").write_text('{"epoch": 1')
    directory.start({"task": "ecqa"})
    assert names(directory.path) == {
        "spec.json",
        "checkpoints/checkpoint-2/adapter_model.safetensors",
        "checkpoints/checkpoint-2/trainer_state.json",
    }
    assert directory.read_spec() == {"task": "ecqa"}
    assert not directory.is_complete


def test_a_complete_run_is_not_started_again(tmp_path: Path, make_result: Callable[..., RunResult]) -> None:
    directory = begun(tmp_path / "run")
    directory.checkpoints_path.mkdir()
    result = make_result()
    directory.finish(result, {"python": "3.11"})
    assert directory.is_complete
    assert directory.read_result() == result
    assert names(directory.path) == {"spec.json", "environment.json", "result.json"}
    assert not directory.checkpoints_path.exists()
    with pytest.raises(CarefError, match="holds a complete run; it is not written again"):
        directory.start({"task": "ecqa"})
    assert directory.read_spec() == {"task": "esnli"}


def test_the_result_is_written_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_result: Callable[..., RunResult]
) -> None:
    directory = begun(tmp_path / "run")

    def cannot(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", cannot)
    with pytest.raises(OSError, match="No space left"):
        directory.finish(make_result(), {})
    assert not directory.is_complete


@pytest.mark.parametrize("act", ["start", "claim"])
def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path, act: str) -> None:
    (tmp_path / "file").write_text("")
    directory = RunDirectory(tmp_path / "file" / "run")
    with pytest.raises(CarefError, match=r"^cannot write to .*run: Not a directory; choose another --out$"):
        if act == "start":
            directory.start({})
        else:
            with directory.claimed():
                pass


def test_a_claim_keeps_others_out_and_leaves_nothing_empty(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "runs" / "run")
    other = (
        "import sys; from pathlib import Path; from caref.results.run_directory import RunDirectory\n"
        "with RunDirectory(Path(sys.argv[1])).claimed(): pass"
    )
    with directory.claimed():
        claim = subprocess.run(
            [sys.executable, "-c", other, str(directory.path)], capture_output=True, text=True, timeout=60
        )
    assert "another process is at work in" in claim.stderr
    assert "wait for it or stop it" in claim.stderr
    assert not directory.path.exists()
    with directory.claimed():
        directory.start({})
    assert names(directory.path) == {".lock", "spec.json"}
    with directory.claimed():
        pass
    assert names(directory.path) == {".lock", "spec.json"}


def test_a_claim_goes_when_its_owner_fails(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt), directory.claimed():
        raise KeyboardInterrupt
    assert not directory.path.exists()
    with directory.claimed():
        pass


def test_own_files_are_kept(tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text("name: mine\n")
    directory = begun(tmp_path / "run")
    directory.keep_files(task=str(own), prompt="feb")
    own.unlink()
    assert directory.own_files() == {"task": str(directory.path / "task.yaml")}
    assert (directory.path / "task.yaml").read_text() == "name: mine\n"


def test_predictions_and_scores(
    tmp_path: Path, prediction: Prediction, make_result: Callable[..., RunResult]
) -> None:
    directory = begun(tmp_path / "run")
    directory.write_predictions([prediction])
    directory.write_scores([prediction], {"nbert": [None], "f1": [0.5]})
    assert json.loads((directory.path / "scores.jsonl").read_text()) == {"id": "1", "nbert": None, "f1": 0.5}
    with pytest.raises(DataError, match=r"holds no complete run: result\.json is missing"):
        directory.read_predictions()
    directory.finish(make_result(), {})
    assert directory.read_predictions() == [prediction]
    with directory.predictions_path.open("a") as file:
        file.write('{"id": "2"}\n')
    with pytest.raises(DataError, match=r"predictions\.jsonl:2: not a prediction"):
        directory.read_predictions()
    directory.predictions_path.unlink()
    with pytest.raises(DataError, match=r"cannot read .*predictions\.jsonl: No such file"):
        directory.read_predictions()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, r"holds no complete run: result\.json is missing"),
        (b'{"run_id": "0', r"result\.json: not a run result: .*JSON"),
        (b"{}", r"result\.json: not a run result: run_id: Field required"),
        (b"\xff\xfe", r"result\.json"),
    ],
)
def test_a_result_that_cannot_be_read(tmp_path: Path, content: bytes | None, told: str) -> None:
    directory = begun(tmp_path / "run")
    if content is not None:
        directory.result_path.write_bytes(content)
    with pytest.raises(DataError, match=told) as caught:
        directory.read_result()
    assert "\n" not in str(caught.value)


def test_a_nan_is_no_result(tmp_path: Path, make_result: Callable[..., RunResult]) -> None:
    with pytest.raises(ValueError, match="finite number"):
        make_result(values={"accuracy": float("nan")})
    directory = begun(tmp_path / "run")
    directory.result_path.write_text(make_result().model_dump_json().replace("50.0", "NaN"))
    with pytest.raises(DataError, match="finite number"):
        directory.read_result()


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "cannot read spec.json"), ("{", "cannot read spec.json"), ("[]", "settings by name, got list")],
)
def test_a_spec_that_cannot_be_read(tmp_path: Path, content: str | None, told: str) -> None:
    directory = RunDirectory(tmp_path)
    if content is not None:
        directory.spec_path.write_text(content)
    with pytest.raises(DataError, match=told):
        directory.read_spec()


def test_runs_in_a_folder(tmp_path: Path, make_result: Callable[..., RunResult]) -> None:
    for name in ("b", "a", "deep/er/c"):
        begun(tmp_path / name).finish(make_result(), {})
    begun(tmp_path / "unfinished")
    (tmp_path / "stray").mkdir()
    (tmp_path / "stray" / "result.json").write_text("not of caref")
    shown = [run.path.relative_to(tmp_path).as_posix() for run in complete_runs(tmp_path)]
    assert shown == ["a", "b", "deep/er/c"]
    assert [run.path.name for run in unfinished_runs(tmp_path)] == ["unfinished"]
    assert list(complete_runs(tmp_path / "nowhere")) == []


def test_every_path_is_documented() -> None:
    """The module's docstring lists what a run's folder holds; `tests/experiments` holds it to a real run."""
    from caref.results import run_directory

    told = run_directory.__doc__ or ""
    for name in ("result_path", "spec_path", "predictions_path", "adapter_path", "model_path", "logs_path"):
        assert f"``{getattr(RunDirectory(Path()), name).name}" in told


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(CarefError, match="Permission denied; choose another --out"):
        RunDirectory(tmp_path / "run").start({})
