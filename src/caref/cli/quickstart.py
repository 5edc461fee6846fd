"""``caref quickstart``: the packaged model as it is, tuned with CE and with CAREF, compared offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caref.cli import told_plainly
from caref.errors import CarefError

if TYPE_CHECKING:
    from caref.experiments.spec import RunSpec
    from caref.reports.summary import Summary, TaskSummary

SPLITS = "0-2"


@told_plainly
def quickstart(
    out: Annotated[Path, typer.Option(help="Folder for the runs and the report.")] = Path("quickstart"),
    splits: Annotated[
        str | None, typer.Option(help=f"FEB's splits, numbered 0 to 59: 0-4 or 3,7. Default: {SPLITS}.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="All 60 splits: twenty times the work.")] = False,
    method: Annotated[str, typer.Option(help="Which weights move (caref list methods).")] = "aq",
    workers: Annotated[
        int | None,
        typer.Option(min=1, metavar="<int>", help="Runs at the same time. Default: 2, or 1 on one core."),
    ] = None,
) -> None:
    """Compare CAREF with cross-entropy.

    On four small tasks of a made-up world, the model that comes with the package answers as it is, then
    tuned with each of two losses. It ends with tables, some answers side by side and a report to open in a
    browser.

    Needs no network, no GPU and no data. A run that is complete is not done again: the same command,
    started anew, does what is missing.
    """
    from caref.cli.progress import watched
    from caref.experiments.series import missing_runs, run_series
    from caref.experiments.workers import available_cores
    from caref.protocol.seeds import parse_splits
    from caref.quickstart import plan
    from caref.reports.page import render_page, write_page
    from caref.reports.summary import summarise
    from caref.results.run_directory import RunDirectory

    if full and splits is not None:
        raise CarefError("give either --splits or --full, not both")
    chosen = parse_splits("all" if full else SPLITS if splits is None else splits)
    roles = plan.planned_runs(chosen, method=method, **_metrics())
    root = out / "runs"
    root.mkdir(parents=True, exist_ok=True)
    specs = _by_task(roles)
    missing = len(missing_runs(specs, root))
    at_once = workers or min(2, available_cores())
    # Of matrices this small a second thread takes more time than it saves.
    if missing and at_once == 1:
        import torch

        torch.set_num_threads(1)
    with watched(runs=missing, already=len(specs) - missing) as progress:
        run_series(specs, root, progress=progress, workers=at_once, threads=1)
    directories = {
        role: [RunDirectory(root / spec.directory_name) for spec in runs] for role, runs in roles.items()
    }
    summary = summarise(directories, compared=(plan.CE, plan.CAREF))
    told = {"--splits": splits, "--method": None if method == "aq" else method}
    flags = ["--full"] if full else []
    flags += [f"{flag} {value}" for flag, value in told.items() if value is not None]
    summary.write(out / "summary.json")
    page = render_page(
        summary,
        title="caref quickstart: CAREF and cross-entropy on four small tasks",
        command=" ".join(["caref quickstart", *flags]),
        about=plan.ABOUT,
        not_shown=plan.NOT_SHOWN,
    )
    write_page(out / "report.html", page)
    _print(summary)
    typer.echo(f"\n{plan.LAST}")
    typer.echo(f"\nreport: {out / 'report.html'}\nruns:   {root}; as one table: caref table {root}")


def _by_task(roles: Mapping[str, Sequence[RunSpec]]) -> list[RunSpec]:
    """All runs, those of one task after each other, so that its data is made once it is needed."""
    return [spec for specs in zip(*roles.values(), strict=True) for spec in specs]


def _metrics() -> dict[str, Any]:
    """The metrics that can be computed without a network."""
    from caref.errors import MissingExtraError
    from caref.experiments.spec import DEFAULT_METRICS
    from caref.metrics.encoders import offline_encoder

    try:
        offline_encoder()
    except MissingExtraError as error:
        typer.echo(f"F1 and nBERT are left out: {error}")
        return {"metrics": tuple(name for name in DEFAULT_METRICS if name != "nbert"), "encoder": None}
    return {}


def _print(summary: Summary) -> None:
    from caref.cli.tables import console, print_table
    from caref.reports import words

    columns = summary.value_names
    rows = [
        [
            task.task if place == 0 else "",
            setting,
            *(words.cell(name, task.values[setting][name]) for name in columns),
        ]
        for task in summary.tasks
        for place, setting in enumerate(summary.settings)
    ]
    print_table(["task", "", *(words.VALUE_HEADINGS[name] for name in columns)], rows, text_columns=2)
    out = console()
    for task in summary.tasks:
        out.print(f"\n{task.task}", markup=False)
        for difference in task.differences:
            out.print(f"  {words.sentence(difference, summary.compared)}", soft_wrap=True, markup=False)
        for line in words.parts(task):
            out.print(f"  {line}", soft_wrap=True, markup=False)
    for task in summary.tasks[:2]:
        _print_example(summary, task)
    out.print()
    for line in [*words.overview(summary), *words.temperature(summary), *words.caution(summary)]:
        out.print(words.capital(line) + ".", soft_wrap=True, markup=False)


def _print_example(summary: Summary, task: TaskSummary) -> None:
    for example in task.examples[:1]:
        typer.echo(f"\nthe first question of {task.task}, split by seed {task.seeds[0]}")
        typer.echo(f"  {'asked':<10} {example.input}")
        typer.echo(f"  {'reference':<10} {example.answer} because {example.explanation}")
        for setting in summary.settings:
            said = example.said[setting]
            typer.echo(f"  {setting:<10} {said.text or '(nothing)'}  [{'right' if said.right else 'wrong'}]")
