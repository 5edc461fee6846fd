"""Several runs as one table: mean and standard deviation over splits."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from caref.results.result import RunResult

GROUP = ("task", "model", "method", "objective", "supervision", "prompt", "setting")
"""What makes runs rows of their own; runs of a row differ in their seed alone."""

COLUMNS = ("accuracy", "f1_given_right", "nbert", "broken", "candidate_accuracy")


@dataclass(frozen=True, slots=True)
class Cell:
    """Mean and sample standard deviation over the splits where the value is defined.

    Attributes:
        mean: None where it is defined in no split.
        std: None with fewer than two values.
        n: The number of values.
    """

    mean: float | None
    std: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Row:
    """One row: what its runs share, and a cell per column."""

    group: dict[str, str]
    splits: int
    cells: dict[str, Cell]
    encoder: str
    warnings: tuple[str, ...] = field(default=())


def aggregate(results: Iterable[tuple[RunResult, str]], columns: Sequence[str] = COLUMNS) -> list[Row]:
    """Group runs by everything but their seed.

    Args:
        results: Runs, each with a hash of its settings other than the seed.
        columns: Names of metric values.

    Returns:
        Rows in the order of their groups. ``setting`` is empty unless two rows would read the same
        without it.
    """
    groups: dict[tuple[str, ...], list[RunResult]] = defaultdict(list)
    for result, setting in results:
        groups[(*(getattr(result, name) for name in GROUP[:-1]), setting)].append(result)
    alike = Counter(key[:-1] for key in groups)
    rows = []
    for key in sorted(groups):
        runs = groups[key]
        names = dict(zip(GROUP, key, strict=True))
        if alike[key[:-1]] == 1:
            names["setting"] = ""
        rows.append(
            Row(
                group=names,
                splits=len(runs),
                cells={column: _cell([_value(run, column) for run in runs]) for column in columns},
                encoder=_encoder(runs),
            )
        )
    return rows


def _value(run: RunResult, column: str) -> float | None:
    try:
        return run.value(column)
    except KeyError:
        return None


def _cell(values: list[float | None]) -> Cell:
    known = [value for value in values if value is not None]
    return Cell(
        mean=statistics.fmean(known) if known else None,
        std=statistics.stdev(known) if len(known) > 1 else None,
        n=len(known),
    )


def _encoder(runs: list[RunResult]) -> str:
    names = {str(run.metrics["nbert"].fingerprint.get("encoder")) for run in runs if "nbert" in run.metrics}
    return ", ".join(sorted(names))


def as_records(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Rows as flat records: ``accuracy_mean``, ``accuracy_std``, ``accuracy_n`` ...; None where undefined."""
    return [
        {
            **row.group,
            "splits": row.splits,
            **{
                f"{column}_{part}": getattr(cell, part)
                for column, cell in row.cells.items()
                for part in ("mean", "std", "n")
            },
            "encoder": row.encoder,
        }
        for row in rows
    ]
