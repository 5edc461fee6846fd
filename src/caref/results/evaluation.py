"""What ``caref evaluate`` leaves of one set of predictions: a folder.

``scores.jsonl``     per-example values of the metrics, as in a run's folder
``evaluation.json``  the metrics; its presence is completion
``calibration.svg``  reliability diagram and risk-coverage curve, drawn afterwards where there are confidences
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from caref.errors import CarefError, DataError
from caref.results.files import write_json
from caref.results.reading import read_model
from caref.results.result import MetricRecord, RunIdentity
from caref.results.scores import Score, read_scores, write_scores


class Evaluation(BaseModel):
    """The metrics of one set of predictions."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = Field(description="what the set is called: its run's or its file's name")
    predictions_sha256: str = Field(description="of the predictions, in their order")
    n: int = Field(description="the number of predictions")
    run: RunIdentity | None = Field(default=None, description="the run that made them, if one did")
    setting: str = Field(default="", description="hash of that run's settings other than the seed")
    metrics: dict[str, MetricRecord]


@dataclass(frozen=True, slots=True)
class EvaluationFolder:
    """Reads and writes one evaluation's folder.

    Attributes:
        path: The folder; it need not exist yet.
    """

    path: Path

    @property
    def evaluation_path(self) -> Path:
        """The file whose presence says that the evaluation is complete."""
        return self.path / "evaluation.json"

    @property
    def scores_path(self) -> Path:
        """The metrics' per-example values."""
        return self.path / "scores.jsonl"

    @property
    def is_complete(self) -> bool:
        """Whether the evaluation was finished."""
        return self.evaluation_path.is_file()

    def write(
        self, evaluation: Evaluation, ids: Sequence[str], columns: Mapping[str, Sequence[Score]]
    ) -> None:
        """Write the scores, then the metrics; what an earlier evaluation left there is replaced.

        Args:
            evaluation: The metrics.
            ids: Of the examples.
            columns: Name to one value per example.

        Raises:
            CarefError: If the folder cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.evaluation_path.unlink(missing_ok=True)
            write_scores(self.scores_path, ids, columns)
            write_json(self.evaluation_path, evaluation.model_dump(mode="json"))
        except OSError as error:
            raise CarefError(f"cannot write {self.path}: {error.strerror or error}") from error

    def read(self) -> Evaluation:
        """Read the metrics.

        Raises:
            DataError: If the folder holds no complete evaluation, or another file of that name.
        """
        if not self.is_complete:
            raise DataError(f"{self.path} holds no complete evaluation: evaluation.json is missing")
        return read_model(self.evaluation_path, Evaluation, "an evaluation")

    def read_scores(self) -> dict[str, dict[str, Score]]:
        """Read the per-example values: the example's id to names to values.

        Raises:
            DataError: If the folder holds no complete evaluation, or a line holds no scores or an id again.
        """
        if not self.is_complete:
            raise DataError(f"{self.path} holds no complete evaluation: evaluation.json is missing")
        return read_scores(self.scores_path)
