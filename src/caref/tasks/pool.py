"""What reading one part of a data set gives: examples, and what could not be read.

Readers yield located examples one by one; `collect` is the one place where every data set
meets the same checks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from caref.errors import DataError
from caref.tasks.example import Example

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = get_args(Part)
SHOWN_PROBLEMS = 10


@dataclass(frozen=True, slots=True)
class Problem:
    """One row that cannot be used as it is: where it stands and what is wrong with it."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Pool:
    """One part of a data set, as read.

    Attributes:
        examples: In the order of the files.
        data_format: Which of the task's formats was read; ``"hub:..."`` for the hub's copy.
        problems: The rows left out; empty unless the caller asked to skip bad rows.
        files: The files read, in order; empty for the hub.
    """

    examples: tuple[Example, ...]
    data_format: str
    problems: tuple[Problem, ...] = ()
    files: tuple[Path, ...] = ()

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    def __len__(self) -> int:
        return len(self.examples)


class RowError(ValueError):
    """What is wrong with one row; readers raise it, `Report.convert` adds the place."""


class Row(NamedTuple):
    """One row of a file: its place and its values by column."""

    file: str
    line: int
    values: Mapping[str, Any]


class Located(NamedTuple):
    """An example and the place that it came from. An empty id asks for one made of its content."""

    file: str
    line: int
    example: Example


@dataclass
class Report:
    """What a reader tells besides its examples: problems, and the files that it opened."""

    problems: list[Problem] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    def add(self, file: str, line: int, message: str) -> None:
        """Record a row that cannot be used."""
        self.problems.append(Problem(file, line, message))

    def convert(self, rows: Iterable[Row], to_example: Callable[[Row], Example]) -> Iterator[Located]:
        """Turn rows into examples; a row for which `to_example` raises `RowError` is recorded."""
        for row in rows:
            try:
                yield Located(row.file, row.line, to_example(row))
            except RowError as error:
                self.add(row.file, row.line, str(error))


def collect(located: Iterable[Located], report: Report, *, data_format: str, skip_bad_rows: bool) -> Pool:
    """Check every example and gather them into a pool.

    Raises:
        DataError: If any row has a problem, unless `skip_bad_rows`; if no usable row is left.
    """
    places: dict[str, str] = {}
    copies: dict[str, int] = {}
    examples: list[Example] = []
    for file, line, example in located:
        problem = _problem(example)
        if problem is None and not example.id:
            example = replace(example, id=_new_id(example, copies))
        if problem is None and example.id in places:
            problem = f"duplicate id {example.id!r}, first seen at {places[example.id]}"
        if problem is not None:
            report.add(file, line, problem)
            continue
        places[example.id] = f"{file}:{line}"
        examples.append(example)
    if report.problems and not skip_bad_rows:
        raise DataError(_told(report.problems))
    if not examples:
        reasons = f"\n{_told(report.problems)}" if report.problems else ""
        files = ", ".join(map(str, report.files)) or data_format
        raise DataError(f"no usable row in {files} (format {data_format}){reasons}")
    return Pool(tuple(examples), data_format, tuple(report.problems), tuple(report.files))


def content_id(example: Example) -> str:
    """An id made of an example's content: the same whatever file or line it stands in.

    The explanations count, so that one question explained twice gives two ids.
    """
    content = [dict(example.fields), example.choices, example.answer, example.explanations]
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _new_id(example: Example, copies: dict[str, int]) -> str:
    """The content's id; equal rows are told apart by their number, so no order matters."""
    made = content_id(example)
    copies[made] = copies.get(made, 0) + 1
    return made if copies[made] == 1 else f"{made}-{copies[made]}"


def _problem(example: Example) -> str | None:
    """What is wrong with an example, whatever data set it is from; None where nothing is."""
    texts = (example.id, *example.fields.values(), *example.choices, example.answer, *example.explanations)
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return "half of a surrogate pair, which no UTF-8 file can hold"
    for name, value in example.fields.items():
        if not value.strip():
            return f"empty {name}"
    if any(not choice.strip() for choice in example.choices):
        return "empty choice"
    if not example.answer.strip():
        return "empty answer"
    if example.choices and example.answer not in example.choices:
        return f"answer {example.answer!r} is not among the choices: {', '.join(example.choices)}"
    if not example.explanations or any(not text.strip() for text in example.explanations):
        return "empty explanation"
    return None


def _told(problems: list[Problem]) -> str:
    count = len(problems)
    lines = [f"{count} bad row{'s' if count > 1 else ''}; correct the data or skip them (skip_bad_rows):"]
    lines += [f"  {problem}" for problem in problems[:SHOWN_PROBLEMS]]
    if count > SHOWN_PROBLEMS:
        lines.append(f"  and {count - SHOWN_PROBLEMS} more")
    return "\n".join(lines)
