"""Several runs as one table: mean and standard deviation over splits."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from caref.results.result import RunResult

GROUP = ("task", "model", "method", "objective", "supervision", "prompt", "setting")
"""What makes runs rows of their own; runs of a row differ in their seed alone."""

COLUMNS = ("accuracy", "f1_given_right", "nbert", "broken", "candidate_accuracy", "calibration_error")

HEADINGS = {
    "accuracy": "accuracy %",
    "f1_given_right": "F1 given right %",
    "nbert": "nBERT %",
    "broken": "broken %",
    "candidate_accuracy": "candidate right %",
    "calibration_error": "calibration error",
    "trainable_percent": "trained %",
    "seconds": "seconds",
    "peak_mib": "peak MiB",
    "saved_mib": "saved MiB",
}
"""Column name to heading; a name that is not here is its own heading."""


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
    """One row: what its runs share, and a cell per column.

    Attributes:
        group: Names of `GROUP` to their values.
        splits: The number of runs.
        cells: Column name to its cell.
        encoder: What computed nBERT; several, with commas, where the runs differ.
        warnings: What was cut or left out on the way to these numbers, in words.
    """

    group: dict[str, str]
    splits: int
    cells: dict[str, Cell]
    encoder: str
    warnings: tuple[str, ...] = field(default=())


def aggregate(
    results: Iterable[tuple[RunResult, str]],
    columns: Sequence[str] | None = None,
    costs: Mapping[str, Mapping[str, float]] | None = None,
) -> list[Row]:
    """Group runs by everything but their seed.

    Args:
        results: Runs, each with a hash of its settings other than the seed.
        columns: Names of metric values; without them those of `COLUMNS` that any run has.
        costs: Run id to more values by name (`caref.results.costs`): columns after the metrics'.

    Returns:
        Rows in the order of their groups. ``setting`` is empty unless two rows would read the same
        without it.
    """
    results = list(results)
    if columns is None:
        known = {name for result, _ in results for name in result.value_names}
        columns = [name for name in COLUMNS if name in known]
    costs = costs or {}
    columns = [*columns, *dict.fromkeys(name for values in costs.values() for name in values)]
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
                cells={
                    column: _cell([_value(run, column, costs.get(run.run_id, {})) for run in runs])
                    for column in columns
                },
                encoder=_encoder(runs),
                warnings=_warnings(runs),
            )
        )
    return rows


def _value(run: RunResult, column: str, costs: Mapping[str, float]) -> float | None:
    try:
        return run.value(column)
    except KeyError:
        return costs.get(column)


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


def _warnings(runs: list[RunResult]) -> tuple[str, ...]:
    asked = sum(run.train_examples + run.evaluated_examples for run in runs)
    trained = sum(run.train_examples for run in runs)
    cut, shortened = sum(run.inputs_cut for run in runs), sum(run.targets_cut for run in runs)
    skipped = max(run.problems_skipped for run in runs)
    told = []
    if cut:
        told.append(f"{cut} of {asked} inputs lost the end of their context (--max-input-tokens)")
    if shortened:
        told.append(
            f"{shortened} of {trained} training targets lost the end of their explanation "
            "(--max-target-tokens)"
        )
    if skipped:
        told.append(f"{skipped} unreadable rows of the data were skipped (--skip-bad-rows)")
    if len({run.data_format for run in runs}) > 1:
        told.append("the runs read different data formats")
    for name in dict.fromkeys(name for run in runs for name in run.metrics):
        measured = [run.metrics[name].fingerprint for run in runs if name in run.metrics]
        if any(fingerprint != measured[0] for fingerprint in measured):
            told.append(f"{name} was not computed in the same way in all runs; see result.json")
    return tuple(told)


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
            "warnings": "; ".join(row.warnings),
        }
        for row in rows
    ]
