"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from caref.results.table import GROUP, Cell, Row

HEADINGS = {
    "accuracy": "accuracy %",
    "f1_given_right": "F1 given right %",
    "nbert": "nBERT %",
    "broken": "broken %",
    "candidate_accuracy": "likeliest candidate right %",
}
"""Column name to heading; a name that is not here is its own heading."""


def console() -> Console:
    """Standard output, wide enough for a table where it is no terminal."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(width=160, highlight=False)


def print_rows(rows: Sequence[Row]) -> None:
    """Print rows with mean and standard deviation, and name the encoder behind nBERT."""
    if not rows:
        console().print("no complete run")
        return
    shown = [name for name in GROUP if len({row.group[name] for row in rows}) > 1 or name in _ALWAYS]
    table = Table()
    for name in shown:
        table.add_column(name)
    table.add_column("splits", justify="right")
    for column in rows[0].cells:
        table.add_column(HEADINGS.get(column, column), justify="right")
    for row in rows:
        table.add_row(
            *(row.group[name] for name in shown),
            str(row.splits),
            *(cell_text(cell) for cell in row.cells.values()),
        )
    out = console()
    out.print(table)
    encoders = sorted({row.encoder for row in rows if row.encoder})
    if encoders:
        out.print(f"mean ± standard deviation over splits; F1 and nBERT by {'; '.join(encoders)}")
    if any("flan" in row.group["model"].lower() for row in rows):
        out.print(
            "Flan's own training holds e-SNLI, ECQA and ComVE with explanations: not unseen tasks for it"
        )


_ALWAYS = ("task", "model", "method", "objective")


def cell_text(cell: Cell) -> str:
    """A cell as it is printed: the mean, ± the standard deviation where there is one."""
    if cell.mean is None:
        return "undefined"
    digits = 2 if abs(cell.mean) >= 0.1 or cell.mean == 0 else 4
    deviation = f" ± {cell.std:.{digits}f}" if cell.std is not None else ""
    return f"{cell.mean:.{digits}f}{deviation}"
