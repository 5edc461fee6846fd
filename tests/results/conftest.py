from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caref.generation.prediction import Prediction
from caref.results.evaluation import Evaluation, EvaluationFolder
from caref.results.result import MetricRecord, RunResult
from caref.results.run_directory import RunDirectory

Columns = dict[str, list[float | None]]


@pytest.fixture
def make_result() -> Callable[..., RunResult]:
    """A whole result; keywords change its fields, and `values` the accuracy metric's."""

    def make(*, values: dict[str, float | None] | None = None, **changes: Any) -> RunResult:
        measured = {"accuracy": 50.0} if values is None else values
        fields = {
            "run_id": "0123456789abcdef",
            "task": "esnli",
            "model": "tiny",
            "method": "aq",
            "objective": "caref",
            "supervision": "answer_and_explanation",
            "prompt": "feb",
            "seed": 1,
            "data_format": "original-csv",
            "problems_skipped": 0,
            "split_checksum": "00",
            "train_examples": 48,
            "evaluated_examples": 350,
            "inputs_cut": 0,
            "targets_cut": 0,
            "trainable_parameters": 10,
            "total_parameters": 100,
            "metrics": {"accuracy": {"values": measured}},
        }
        return RunResult.model_validate(fields | changes)

    return make


@pytest.fixture
def prediction() -> Prediction:
    return Prediction(
        id="1",
        input="Is milk white?",
        text="yes because it is",
        label="yes",
        explanation="it is",
        broken=False,
        gold_label="yes",
        gold_explanations=("milk is white",),
    )


class Folders:
    """Writes runs and evaluations with per-example scores, as ``caref run`` and ``caref evaluate`` do."""

    def __init__(self, root: Path, make_result: Callable[..., RunResult], prediction: Prediction) -> None:
        self.root, self.make_result, self.prediction = root, make_result, prediction

    def run(self, name: str, columns: Columns, *, seed: int = 1, **changes: Any) -> RunDirectory:
        """A complete run; the split's checksum is its seed."""
        run = RunDirectory(self.root / name)
        run.start({})
        ids = [str(row) for row in range(len(next(iter(columns.values()))))]
        run.write_scores([self.prediction.model_copy(update={"id": each}) for each in ids], columns)
        run.finish(self.make_result(seed=seed, **{"split_checksum": str(seed), **changes}), {})
        return run

    def evaluation(
        self, name: str, columns: Columns, *, run: dict[str, Any] | None = None, **metrics: Any
    ) -> Path:
        """A complete evaluation, of a run where its fields are given."""
        folder = EvaluationFolder(self.root / name)
        size = len(next(iter(columns.values())))
        records = {each: MetricRecord(**record) for each, record in metrics.items()}
        of_run = None if run is None else self.make_result(**run).identity
        evaluation = Evaluation(
            name=folder.path.name, predictions_sha256="0", n=size, run=of_run, setting="s", metrics=records
        )
        folder.write(evaluation, [str(row) for row in range(size)], columns)
        return folder.path


@pytest.fixture
def folders(tmp_path: Path, make_result: Callable[..., RunResult], prediction: Prediction) -> Folders:
    return Folders(tmp_path, make_result, prediction)
