"""Tables on the terminal."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from caref.results.table import GROUP, HEADINGS, Cell, Row


def console() -> Console:
    """Standard output, wide enough for a table where it is no terminal."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(width=200, highlight=False)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1) -> None:
    """Print a table, or a block a row where the terminal is too narrow: a table would cut its numbers.

    Args:
        headings: One per column.
        rows: The cells.
        text_columns: So many of the first columns are words; the others are set flush right.
    """
    out, table = console(), Table()
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < text_columns else "right")
    for row in rows:
        table.add_row(*map(escape, row))
    if Measurement.get(out, out.options.update(max_width=1000), table).maximum <= out.width:
        out.print(table)
        return
    wide = max(map(len, headings))
    for row in rows:
        for heading, cell in zip(headings, row, strict=True):
            out.print(f"{heading:<{wide}}  {cell}", soft_wrap=True, markup=False)
        out.print()


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1) -> str:
    """A table in Markdown; the arguments are those of `print_table`."""
    rules = ["---" if number < text_columns else "---:" for number in range(len(headings))]
    lines = [headings, rules, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def print_records(records: Sequence[Mapping[str, object]], output: Literal["csv", "json"]) -> None:
    """Print flat records, all with the same names, for another program."""
    if output == "json":
        typer.echo(json.dumps(records, indent=2))
    elif records:
        writer = csv.DictWriter(sys.stdout, fieldnames=list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


def print_rows(rows: Sequence[Row]) -> None:
    """Print rows with mean and standard deviation, and name the encoder behind nBERT."""
    if not rows:
        console().print("no complete run")
        return
    shown, headings, cells = _shown(rows)
    out = console()
    print_table(headings, cells, text_columns=len(shown))
    encoders = sorted({row.encoder for row in rows if row.encoder})
    if encoders:
        out.print(f"mean ± standard deviation over splits; F1 and nBERT by {'; '.join(encoders)}")
    for row in rows:
        for warning in row.warnings:
            name = " ".join(row.group[each] for each in shown if row.group[each])
            out.print(f"{name}: {warning}", soft_wrap=True)
    if any("flan" in row.group["model"].lower() for row in rows):
        out.print(
            "Flan's own training holds e-SNLI, ECQA and ComVE with explanations: not unseen tasks for it"
        )


def markdown_rows(rows: Sequence[Row]) -> str:
    """The same as `print_rows`, in Markdown, without its notes."""
    shown, headings, cells = _shown(rows)
    return markdown_table(headings, cells, text_columns=len(shown))


def _shown(rows: Sequence[Row]) -> tuple[list[str], list[str], list[list[str]]]:
    """The names of the group's columns that are shown, all headings, and the cells."""
    shown = [name for name in GROUP if len({row.group[name] for row in rows}) > 1 or name in _ALWAYS]
    headings = [*shown, "splits", *(HEADINGS.get(column, column) for column in rows[0].cells)]
    cells = [
        [*(row.group[name] for name in shown), str(row.splits), *map(cell_text, row.cells.values())]
        for row in rows
    ]
    return shown, headings, cells


_ALWAYS = ("task", "model", "method", "objective")


def cell_text(cell: Cell) -> str:
    """A cell as it is printed: the mean, ± the standard deviation where there is one."""
    if cell.mean is None:
        return "undefined"
    deviation = f" ± {cell.std:.{_digits(cell.mean)}f}" if cell.std is not None else ""
    return f"{number_text(cell.mean)}{deviation}"


def number_text(value: float, *, like: float | None = None) -> str:
    """A number with two digits after the point, or four where it, or the one it stands beside, is below 1.

    Example:
        >>> number_text(66.6666), number_text(0.0312), number_text(-0.5), number_text(0.0, like=0.5)
        ('66.67', '0.0312', '-0.5000', '0.0000')
    """
    return f"{value:.{_digits(value if like is None else like)}f}"


def _digits(value: float) -> int:
    return 2 if abs(value) >= 1 or value == 0 else 4
