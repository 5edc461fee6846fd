"""``caref table``: runs beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from caref.cli import told_plainly
from caref.errors import DataError


@told_plainly
def table(
    runs: Annotated[Path, typer.Argument(help="Folder of run directories.")] = Path("runs"),
    columns: Annotated[str | None, typer.Option(help="Metric values, separated by commas.")] = None,
    output: Annotated[
        Literal["text", "csv", "json"], typer.Option("--format", help="How to print it.")
    ] = "text",
) -> None:
    """Aggregate runs.

    Runs that differ in their seed alone are one row. Unfinished runs are counted, not read.
    """
    from caref.cli.tables import print_rows
    from caref.experiments.spec import RunSpec
    from caref.results.run_directory import complete_runs, unfinished_runs
    from caref.results.table import COLUMNS, aggregate, as_records

    if not runs.is_dir():
        raise DataError(f"no folder of runs at {runs}; caref run --out {runs} makes one")
    wanted = tuple(name.strip() for name in columns.split(",")) if columns else COLUMNS
    found = list(complete_runs(runs))
    results = [(each.read_result(), RunSpec.model_validate(each.read_spec()).setting_id) for each in found]
    known = {name for result, _ in results for record in result.metrics.values() for name in record.values}
    if results and (unknown := [name for name in wanted if name not in known]):
        raise DataError(f"no run has a value {unknown[0]!r}; there are: {', '.join(sorted(known))}")
    rows = aggregate(results, wanted)
    if output == "text":
        print_rows(rows)
        waiting = sum(1 for _ in unfinished_runs(runs))
        if waiting:
            typer.echo(f"{waiting} more unfinished: the command that began them goes on with them")
        return
    records = as_records(rows)
    if output == "json":
        import json

        typer.echo(json.dumps(records, indent=2))
        return
    import csv
    import sys

    writer = csv.DictWriter(sys.stdout, fieldnames=list(records[0]) if records else [])
    writer.writeheader()
    writer.writerows(records)
