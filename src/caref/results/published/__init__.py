"""Published tables: means, deviations and which numbers are set in bold, as a file of numbers.

``caref_table1.csv`` is the table of results of the CAREF paper. Its section on training with and without the
regularizer (RQ2) asks two questions, of full fine-tuning and of AQ, and sets numbers in bold for either: here
it is two blocks.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from caref.errors import DataError

AVERAGE = "average"
"""The task of a number that is the mean over the other tasks of its row."""


class PublishedNumber(BaseModel):
    """One number of a table."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    block: str = Field(description="the numbers that are compared with each other, by value and task")
    model: str = Field(description="the row")
    task: str = Field(description="the column, or average")
    value: str = Field(description="accuracy, nbert or another one of which more is better")
    mean: float
    std: float | None = Field(ge=0, description="what stands after the ±; None where nothing does")
    n: int = Field(ge=2, description="the number of splits behind it")
    bold: bool

    @field_validator("std", mode="before")
    @classmethod
    def _empty_is_none(cls, given: object) -> object:
        return None if given == "" else given


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A table of numbers, and where it was read.

    Attributes:
        name: The file's.
        numbers: In the file's order.
    """

    name: str
    numbers: tuple[PublishedNumber, ...]

    def column_of(self, number: PublishedNumber) -> list[PublishedNumber]:
        """The numbers that are compared with a number, itself included: of its block, value and task."""
        wanted = (number.block, number.task, number.value)
        return [each for each in self.numbers if (each.block, each.task, each.value) == wanted]

    def tasks_of(self, number: PublishedNumber) -> list[PublishedNumber]:
        """The numbers of its row and value, without the average: those that an average is the mean of."""
        wanted = (number.block, number.model, number.value)
        return [
            each
            for each in self.numbers
            if (each.block, each.model, each.value) == wanted and each.task != AVERAGE
        ]

    def beside(self, number: PublishedNumber, value: str) -> PublishedNumber | None:
        """Another value of its row and task; None where the table does not have it."""
        wanted = (number.block, number.model, number.task, value)
        return next(
            (each for each in self.numbers if (each.block, each.model, each.task, each.value) == wanted), None
        )


def read_published(path: Path) -> PublishedTable:
    """Read a CSV file with the columns block, model, task, value, mean, std, n and bold (1 or 0).

    Raises:
        DataError: If it cannot be read, or on the first line that does not fit, or holds a number again.
    """
    try:
        return _read(path.name, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"cannot read {path}: {error}") from error


def paper_table() -> PublishedTable:
    """The table of results of the CAREF paper.

    Example:
        >>> table = paper_table()
        >>> len(table.numbers), sum(number.bold for number in table.numbers)
        (130, 31)
    """
    file = files(__package__).joinpath("caref_table1.csv")
    return _read(file.name, file.read_text(encoding="utf-8"))


def _read(name: str, text: str) -> PublishedTable:
    reader = csv.DictReader(text.splitlines())
    expected, columns = list(PublishedNumber.model_fields), list(reader.fieldnames or ["none"])
    if sorted(columns) != sorted(expected):
        raise DataError(f"{name}: expected the columns {', '.join(expected)}, got {', '.join(columns)}")
    found: dict[tuple[str, str, str, str], PublishedNumber] = {}
    for row in reader:
        try:
            number = PublishedNumber.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise DataError(
                f"{name}:{reader.line_num}: {where}: {first['msg']}, got {first['input']!r}"
            ) from error
        key = (number.block, number.model, number.task, number.value)
        if key in found:
            raise DataError(f"{name}:{reader.line_num}: a number for {', '.join(key)} is there twice")
        found[key] = number
    if not found:
        raise DataError(f"{name} holds no number")
    return PublishedTable(name, tuple(found.values()))
