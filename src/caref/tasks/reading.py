"""Rows of JSONL, JSON, CSV, TSV and Parquet files, each with its file and line.

A row that cannot be read is recorded and left out; a file that is not of the expected kind at
all (missing columns, no JSON array) raises at once. Files are UTF-8, a byte-order mark is
dropped, blank lines are passed over.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from caref.errors import DataError
from caref.tasks.pool import Report, Row, RowError

_LONGEST_CELL = 1 << 24  # csv's own limit, 131072 characters, is a surprise and not a check


def text(values: Any, *keys: str) -> str:
    """The text under a key, or under nested keys.

    Raises:
        RowError: If there is none, if it is not a text, or if it is blank.
    """
    value = values
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            raise RowError(f"no {'.'.join(keys)}")
        value = value[key]
    if not isinstance(value, str):
        raise RowError(f"{'.'.join(keys)} must be a text, got {value!r}")
    if not value.strip():
        raise RowError(f"empty {'.'.join(keys)}")
    return value


def optional_texts(values: Any, *keys: str) -> tuple[str, ...]:
    """The texts under those keys that are there and not blank: slots that a release may leave empty."""
    found = (values.get(key) for key in keys)
    return tuple(value for value in found if isinstance(value, str) and value.strip())


def read_jsonl(path: Path, report: Report) -> Iterator[Row]:
    """One JSON object per line."""
    for line, content, readable in _lines(path, report):
        if not readable or not content.strip():
            continue
        try:
            values = json.loads(content)
        except ValueError as error:
            report.add(str(path), line, f"not JSON: {error}")
            continue
        if isinstance(values, dict):
            yield Row(str(path), line, values)
        else:
            report.add(str(path), line, "expected a JSON object")


def read_json_array(path: Path, report: Report) -> Iterator[Row]:
    """One JSON array of objects; the place of a row is its number, from 1."""
    lines = list(_lines(path, report))
    if not all(readable for _, _, readable in lines):
        raise DataError(str(report.problems[-1]))
    content = "".join(line for _, line, _ in lines)
    try:
        array = json.loads(content)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
    if not isinstance(array, list):
        raise DataError(f"{path}:1: expected a JSON array of objects")
    for number, values in enumerate(array, start=1):
        if isinstance(values, dict):
            yield Row(str(path), number, values)
        else:
            report.add(str(path), number, "expected a JSON object")


def read_table(
    path: Path,
    report: Report,
    *,
    columns: Sequence[str] = (),
    header: bool = True,
    delimiter: str = ",",
    quoting: bool = True,
) -> Iterator[Row]:
    """Rows of a CSV or TSV file; the place of a row is its first line.

    Args:
        path: The file.
        report: Takes the rows that cannot be read.
        columns: With a header: columns that must be there. Without one: the names of all columns.
        header: Whether the first line names the columns.
        delimiter: Between two cells.
        quoting: Whether double quotes can hold delimiters and line breaks.

    Raises:
        DataError: If the header lacks a column.
    """
    csv.field_size_limit(_LONGEST_CELL)
    undecodable: set[int] = set()

    def decoded() -> Iterator[str]:
        for line, content, readable in _lines(path, report):
            if not readable:
                undecodable.add(line)
            yield content

    rows = csv.reader(
        decoded(),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE,
        strict=quoting,
    )
    names = list(columns)
    while True:
        line = rows.line_num + 1
        try:
            cells = next(rows, None)
        except csv.Error as error:
            report.add(str(path), line, f"not a table row: {error}")
            continue
        if cells is None:
            return
        if not cells or undecodable.intersection(range(line, rows.line_num + 1)):
            continue
        if header:
            header, names = False, cells
            _require(path, line, columns, names)
        elif len(cells) != len(names):
            report.add(
                str(path), line, f"expected {len(names)} columns ({', '.join(names)}), got {len(cells)}"
            )
        else:
            yield Row(str(path), line, dict(zip(names, cells, strict=True)))


def read_parquet(path: Path, report: Report) -> Iterator[Row]:
    """Rows of a Parquet file; the place of a row is its number, from 1."""
    import pyarrow
    import pyarrow.parquet

    report.files.append(path)
    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path}: not a Parquet file: {error}") from error
    for number, values in enumerate(table.to_pylist(), start=1):
        yield Row(str(path), number, values)


def read_rows(path: Path, report: Report, *, columns: Sequence[str] = ()) -> Iterator[Row]:
    """Rows of a file by its suffix: .jsonl, .json (an array), .csv, .tsv or .parquet.

    Args:
        path: The file.
        report: Takes the rows that cannot be read.
        columns: Columns that the header of a table must have.

    Raises:
        DataError: If the suffix is none of these, or a column is missing.
    """
    match path.suffix:
        case ".jsonl":
            return read_jsonl(path, report)
        case ".json":
            return read_json_array(path, report)
        case ".csv":
            return read_table(path, report, columns=columns)
        case ".tsv":
            return read_table(path, report, columns=columns, delimiter="\t")
        case ".parquet":
            return read_parquet(path, report)
    raise DataError(f"{path}: expected a file ending in .jsonl, .json, .csv, .tsv or .parquet")


def _lines(path: Path, report: Report) -> Iterator[tuple[int, str, bool]]:
    """Number, text with its end, and whether it is UTF-8; where it is not, that is recorded.

    Such a line still comes, with replacement characters, so that a table's quotes stay paired.
    """
    report.files.append(path)
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            encoding = "utf-8-sig" if number == 1 else "utf-8"
            try:
                yield number, raw.decode(encoding), True
            except UnicodeDecodeError as error:
                byte = f"byte {error.start + 1} is 0x{raw[error.start]:02x}"
                report.add(str(path), number, f"not UTF-8: {byte}")
                yield number, raw.decode(encoding, "replace"), False


def _require(path: Path, line: int, columns: Sequence[str], found: Sequence[str]) -> None:
    missing = [name for name in columns if name not in found]
    if missing:
        raise DataError(f"{path}:{line}: no column {', '.join(missing)}; found: {', '.join(found)}")
