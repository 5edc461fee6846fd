"""The folder of one run.

``spec.json``         what was asked, every setting resolved
``task.yaml``         a copy of your own task's file, where the run has one; ``prompt.yaml`` likewise
``predictions.jsonl`` one line per evaluated example
``scores.jsonl``      per-example values of the metrics
``history.jsonl``     the training log
``environment.json``  versions, commit, device, seconds per stage, peak memory
``adapter/``          the trained weights in PEFT's format; ``model/`` where the whole model was trained
``logs/``             what TensorBoard, W&B or MLflow write, where they were asked for
``checkpoints/``      the Trainer's own, to resume from; gone when the run is complete
``.lock``             held by the process that is at work here; empty, and of no meaning afterwards
``result.json``       the metrics; written last, so that its presence is completion
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from caref.errors import CarefError, DataError
from caref.generation.prediction import Prediction, read_predictions, write_predictions
from caref.results.files import TEMPORARY, write_atomically, write_json, write_json_lines
from caref.results.reading import read_model
from caref.results.result import RunResult
from caref.results.scores import Score, read_scores, write_scores


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """Reads and writes one run's folder.

    Attributes:
        path: The folder; it need not exist yet.
    """

    path: Path

    @property
    def result_path(self) -> Path:
        """The file whose presence says that the run is complete."""
        return self.path / "result.json"

    @property
    def spec_path(self) -> Path:
        """What was asked."""
        return self.path / "spec.json"

    @property
    def predictions_path(self) -> Path:
        """One prediction per line."""
        return self.path / "predictions.jsonl"

    @property
    def scores_path(self) -> Path:
        """The metrics' per-example values, one example per line."""
        return self.path / "scores.jsonl"

    @property
    def adapter_path(self) -> Path:
        """The trained adapter."""
        return self.path / "adapter"

    @property
    def model_path(self) -> Path:
        """The trained model, where all of it was trained."""
        return self.path / "model"

    @property
    def checkpoints_path(self) -> Path:
        """The Trainer's own folder while a run goes on."""
        return self.path / "checkpoints"

    @property
    def logs_path(self) -> Path:
        """What the Trainer's reporters write."""
        return self.path / "logs"

    @property
    def is_complete(self) -> bool:
        """Whether the run was finished."""
        return self.result_path.is_file()

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Make the folder and keep other processes out of it; one that holds nothing in the end goes again.

        Raises:
            CarefError: If another process is at work there, or the folder cannot be written.
        """
        lock_path = self.path / ".lock"
        with self._told_plainly():
            self.path.mkdir(parents=True, exist_ok=True)
            # The system frees the lock when the process ends, however it ends.
            lock = FileLock(lock_path)
            try:
                lock.acquire(timeout=0)
            except Timeout as error:
                raise CarefError(
                    f"another process is at work in {self.path}; wait for it or stop it"
                ) from error
        try:
            yield
        finally:
            with suppress(OSError):
                if [each.name for each in self.path.iterdir()] == [lock_path.name]:
                    lock_path.unlink()
                    self.path.rmdir()
            lock.release()

    def start(self, spec: dict[str, Any]) -> None:
        """Make the folder, and clear what an unfinished run left in it but its whole checkpoints.

        Raises:
            CarefError: If the run is complete, or the folder cannot be written.
        """
        if self.is_complete:
            raise CarefError(f"{self.path} holds a complete run; it is not written again")
        with self._told_plainly():
            self.path.mkdir(parents=True, exist_ok=True)
            self._clear_half_checkpoints()
            for stale in (self.adapter_path, self.model_path):
                shutil.rmtree(stale, ignore_errors=True)
            if not self.checkpoints_path.is_dir():
                shutil.rmtree(self.logs_path, ignore_errors=True)
            for name in ("predictions.jsonl", "scores.jsonl", "history.jsonl", "environment.json"):
                (self.path / name).unlink(missing_ok=True)
            for left in self.path.glob(f".*{TEMPORARY}"):
                left.unlink(missing_ok=True)
            write_json(self.spec_path, spec)

    def _clear_half_checkpoints(self) -> None:
        """Remove checkpoints that a killed process did not finish: the Trainer takes the newest as it is."""
        for checkpoint in self.checkpoints_path.glob("checkpoint-*"):
            try:
                # The Trainer writes this file last.
                json.loads((checkpoint / "trainer_state.json").read_bytes())
            except (OSError, ValueError):
                shutil.rmtree(checkpoint, ignore_errors=True)

    @contextmanager
    def _told_plainly(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CarefError(
                f"cannot write to {self.path}: {error.strerror or error}; choose another --out"
            ) from error

    def keep_files(self, **files: str) -> None:
        """Copy the user's own YAML files into the run, so that it can be read without them.

        Args:
            **files: ``task`` and ``prompt`` to a name or a path; only what is a YAML file is copied.
        """
        for name, source in files.items():
            if source.endswith((".yaml", ".yml")):
                shutil.copyfile(source, self.path / f"{name}.yaml")

    def own_files(self) -> dict[str, str]:
        """The copies that `keep_files` made: ``task`` and ``prompt`` to their paths, where there are any."""
        copies = {name: self.path / f"{name}.yaml" for name in ("task", "prompt")}
        return {name: str(path) for name, path in copies.items() if path.is_file()}

    def write_predictions(self, predictions: list[Prediction]) -> None:
        """Write the predictions."""
        write_predictions(self.predictions_path, predictions)

    def write_history(self, history: list[dict[str, Any]]) -> None:
        """Write the training log."""
        write_json_lines(self.path / "history.jsonl", history)

    def write_scores(self, predictions: list[Prediction], columns: dict[str, list[Score]]) -> None:
        """Write the metrics' per-example values beside the examples' ids."""
        write_scores(self.scores_path, [prediction.id for prediction in predictions], columns)

    def write_card(self, text: str) -> None:
        """Write the model card beside the trained weights, where they were kept."""
        for folder in (self.adapter_path, self.model_path):
            if folder.is_dir():
                write_atomically(folder / "README.md", text)

    def finish(self, result: RunResult, environment: dict[str, Any]) -> None:
        """Write the environment, then the result; after this the run is complete."""
        write_json(self.path / "environment.json", environment)
        shutil.rmtree(self.checkpoints_path, ignore_errors=True)
        write_json(self.result_path, result.model_dump(mode="json"))

    def read_result(self) -> RunResult:
        """Read a complete run's result.

        Raises:
            DataError: If there is none or it is not a result.
        """
        if not self.is_complete:
            raise DataError(f"{self.path} holds no complete run: result.json is missing")
        return read_model(self.result_path, RunResult, "a run result")

    def read_spec(self) -> dict[str, Any]:
        """Read what was asked.

        Raises:
            DataError: If there is no readable spec.
        """
        try:
            spec = json.loads(self.spec_path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{self.path} is no run: cannot read spec.json ({_reason(error)})") from error
        if not isinstance(spec, dict):
            raise DataError(f"{self.spec_path}: expected settings by name, got {type(spec).__name__}")
        return spec

    def read_environment(self) -> dict[str, Any]:
        """Read what a complete run took and on what it ran.

        Raises:
            DataError: If that cannot be read.
        """
        path = self.path / "environment.json"
        try:
            environment = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"cannot read {path}: {_reason(error)}") from error
        if not isinstance(environment, dict):
            raise DataError(f"{path}: expected values by name, got {type(environment).__name__}")
        return environment

    def read_predictions(self) -> list[Prediction]:
        """Read the predictions of a complete run.

        Raises:
            DataError: If the run is not complete or a line is no prediction.
        """
        if not self.is_complete:
            raise DataError(f"{self.path} holds no complete run: result.json is missing")
        try:
            return read_predictions(self.predictions_path)
        except OSError as error:
            raise DataError(f"cannot read {self.predictions_path}: {_reason(error)}") from error

    def read_scores(self) -> dict[str, dict[str, Score]]:
        """Read the per-example values of a complete run: the example's id to names to values.

        Raises:
            DataError: If the run is not complete, or a line holds no scores or an id again.
        """
        if not self.is_complete:
            raise DataError(f"{self.path} holds no complete run: result.json is missing")
        return read_scores(self.scores_path)


def complete_runs(root: Path) -> Iterator[RunDirectory]:
    """The complete runs in a folder and its subfolders, in the order of their paths."""
    for result in sorted(root.rglob("result.json")):
        directory = RunDirectory(result.parent)
        if directory.spec_path.is_file():
            yield directory


def unfinished_runs(root: Path) -> Iterator[RunDirectory]:
    """The runs in a folder that were begun and not finished."""
    for spec in sorted(root.rglob("spec.json")):
        directory = RunDirectory(spec.parent)
        if not directory.is_complete:
            yield directory


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
