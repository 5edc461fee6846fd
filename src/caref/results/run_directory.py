"""The folder of one run.

``spec.json``         what was asked, every setting resolved
``predictions.jsonl`` one line per evaluated example
``scores.jsonl``      per-example values of the metrics
``history.jsonl``     the training log
``environment.json``  versions, commit, device, seconds per stage, peak memory
``adapter/``          the trained weights in PEFT's format; ``model/`` where the whole model was trained
``result.json``       the metrics; written last, so that its presence is completion
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from caref.errors import CarefError, DataError
from caref.generation.prediction import Prediction, read_predictions, write_predictions
from caref.results.files import write_json, write_json_lines
from caref.results.result import RunResult


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
    def is_complete(self) -> bool:
        """Whether the run was finished."""
        return self.result_path.is_file()

    def start(self, spec: dict[str, Any]) -> None:
        """Make the folder, and clear what an unfinished run left in it but its checkpoints.

        Raises:
            CarefError: If the run is complete, or the folder cannot be written.
        """
        if self.is_complete:
            raise CarefError(f"{self.path} holds a complete run; it is not written again")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for stale in (self.adapter_path, self.model_path):
                shutil.rmtree(stale, ignore_errors=True)
            for name in ("predictions.jsonl", "scores.jsonl", "history.jsonl", "environment.json"):
                (self.path / name).unlink(missing_ok=True)
            write_json(self.spec_path, spec)
        except OSError as error:
            raise CarefError(
                f"cannot write to {self.path}: {error.strerror}; choose another --out"
            ) from error

    def write_predictions(self, predictions: list[Prediction]) -> None:
        """Write the predictions."""
        write_predictions(self.predictions_path, predictions)

    def write_history(self, history: list[dict[str, Any]]) -> None:
        """Write the training log."""
        write_json_lines(self.path / "history.jsonl", history)

    def write_scores(self, predictions: list[Prediction], columns: dict[str, list[float | None]]) -> None:
        """Write the metrics' per-example values beside the examples' ids."""
        write_json_lines(
            self.path / "scores.jsonl",
            [
                {"id": prediction.id, **{name: values[row] for name, values in columns.items()}}
                for row, prediction in enumerate(predictions)
            ],
        )

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
        try:
            return RunResult.model_validate_json(self.result_path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise DataError(f"{self.path} holds no complete run: result.json is missing") from error
        except ValidationError as error:
            first = error.errors()[0]
            raise DataError(
                f"{self.result_path}: not a run result: {first['loc']}: {first['msg']}"
            ) from error

    def read_spec(self) -> dict[str, Any]:
        """Read what was asked.

        Raises:
            DataError: If there is no readable spec.
        """
        try:
            return json.loads(self.spec_path.read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError) as error:
            raise DataError(f"{self.path} is no run: cannot read spec.json ({error})") from error

    def read_predictions(self) -> list[Prediction]:
        """Read the predictions of a complete run.

        Raises:
            DataError: If the run is not complete or a line is no prediction.
        """
        if not self.is_complete:
            raise DataError(f"{self.path} holds no complete run: result.json is missing")
        return read_predictions(self.predictions_path)


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
