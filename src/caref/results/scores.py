"""Per-example values of metrics: the line format of ``scores.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from caref.errors import DataError
from caref.results.files import write_json_lines

Score = float | None
"""None where the value is undefined for the example."""


class _Line(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    __pydantic_extra__: dict[str, Score] = Field(init=False)

    id: str


def write_scores(path: Path, ids: Sequence[str], columns: Mapping[str, Sequence[Score]]) -> None:
    """Write one example per line, atomically.

    Args:
        path: The file.
        ids: Of the examples.
        columns: Name to one value per example.
    """
    rows = [
        {"id": example, **{name: values[row] for name, values in columns.items()}}
        for row, example in enumerate(ids)
    ]
    write_json_lines(path, rows)


def read_scores(path: Path) -> dict[str, dict[str, Score]]:
    """Read what `write_scores` wrote: the example's id to names to values.

    Raises:
        DataError: If the file cannot be read, or a line holds no scores or an id again.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    scores: dict[str, dict[str, Score]] = {}
    for number, line in enumerate(lines, start=1):
        try:
            row = _Line.model_validate_json(line)
        except ValidationError as error:
            told = error.errors()[0]["msg"]
            raise DataError(f"{path}:{number}: not an example's scores: {told}") from error
        if row.id in scores:
            raise DataError(f"{path}:{number}: the id {row.id!r} is there twice")
        scores[row.id] = row.model_extra or {}
    return scores
