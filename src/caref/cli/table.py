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
    columns: Annotated[
        str | None,
        typer.Option(help="Which metric values, separated by commas, such as accuracy,answer_mass."),
    ] = None,
    costs: Annotated[
        bool,
        typer.Option("--costs", help="Also what was trained, seconds, peak memory and the size on disk."),
    ] = False,
    output: Annotated[
        Literal["text", "csv", "json", "markdown"], typer.Option("--format", help="How to print it.")
    ] = "text",
) -> None:
    """Aggregate runs.

    Runs that differ in their seed alone are one row. Unfinished runs are counted, not read.
    """
    from caref.cli.tables import markdown_rows, print_records, print_rows
    from caref.experiments.spec import read_run_spec
    from caref.results.costs import run_costs
    from caref.results.run_directory import complete_runs, unfinished_runs
    from caref.results.table import aggregate, as_records

    if not runs.is_dir():
        raise DataError(f"no folder of runs at {runs}; caref run --out {runs} makes one")
    directories = list(complete_runs(runs))
    results = [(run.read_result(), read_run_spec(run).setting_id) for run in directories]
    wanted = None
    if columns is not None:
        wanted = tuple(filter(None, map(str.strip, columns.split(","))))
        known = sorted({name for result, _ in results for name in result.value_names})
        if results and (unknown := [name for name in wanted if name not in known]):
            raise DataError(f"no run has a value {unknown[0]!r}; there are: {', '.join(known)}")
    of_runs = zip(results, directories, strict=True) if costs else ()
    measured = {result.run_id: run_costs(run) for (result, _), run in of_runs}
    rows = aggregate(results, wanted, measured)
    waiting = sum(1 for _ in unfinished_runs(runs))
    if waiting:
        typer.echo(
            f"unfinished and not in the table: {waiting}; the same command again completes them", err=True
        )
    if output == "text":
        print_rows(rows)
        return
    if output == "markdown":
        typer.echo(markdown_rows(rows) if rows else "no complete run")
        return
    print_records(as_records(rows), output)
