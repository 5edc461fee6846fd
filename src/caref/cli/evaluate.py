"""``caref evaluate``: every metric of predictions that are there already."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from caref.cli import told_plainly
from caref.cli.flags import with_setting_flags
from caref.errors import CarefError

if TYPE_CHECKING:
    from caref.experiments.evaluating import Evaluated
    from caref.results.evaluation import Evaluation

NULL = ("_expected", "_95")
"""How the names end of what perfect calibration would give: the mean, and the 95 % quantile."""


@told_plainly
@with_setting_flags(sections=frozenset({"metric_settings"}))
def evaluate(
    predictions: Annotated[
        list[Path], typer.Argument(help="Files of predictions (JSON lines), runs, or folders of either.")
    ],
    *,
    metrics: Annotated[
        str | None, typer.Option(help="Only these, separated by commas (caref list metrics).")
    ] = None,
    pool: Annotated[
        bool,
        typer.Option("--pool", help="All splits of a setting as one set; files all together as one."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write evaluation.json, scores.jsonl and calibration.svg of every set below here."),
    ] = None,
    cache: Annotated[
        bool,
        typer.Option("--cache/--no-cache", help="Keep what an encoder gave on disk, in ~/.cache/caref."),
    ] = True,
    output: Annotated[
        Literal["text", "json", "csv", "markdown"], typer.Option("--format", help="How to print it.")
    ] = "text",
    settings: dict[str, Any],
) -> None:
    """Evaluate predictions.

    No language model is needed, and nothing but the predictions: docs/predictions.md has their format. Each
    line is checked, and the first that does not fit is named.

    One set is printed with the 95 % interval of every number over examples; several with one line each, and
    runs that differ in their seed alone as one row.
    """
    from caref.cli.progress import counted
    from caref.experiments.evaluating import Evaluator, find_prediction_sets, pooled
    from caref.metrics.bertscore import ScoreCache

    if out is not None and pool:
        raise CarefError("--out writes the sets one by one; leave out --pool")
    names = None if metrics is None else [name.strip() for name in metrics.split(",") if name.strip()]
    sets = find_prediction_sets(predictions)
    evaluator = Evaluator.make(names, settings, cache=ScoreCache.default() if cache else None)
    for name, reason in evaluator.left_out.items():
        typer.echo(f"{name} is left out: {reason}", err=True)
    sets = pooled(sets) if pool else sets
    with counted("embedding and comparing explanations") as told:
        evaluator.prepare(sets, on_progress=told)
    evaluated = []
    with counted("computing metrics") as told:
        for each in evaluator.evaluate(sets):
            if out is not None:
                each.write(out)
                _draw(each, out)
            evaluated.append(each)
            told(len(evaluated), len(sets))
    _print(evaluated, output)
    if out is not None:
        typer.echo(f"written to {out}: a folder of each set", err=output != "text")


def _draw(evaluated: Evaluated, out: Path) -> None:
    """The reliability diagram and the risk-coverage curve, where there are confidences."""
    from caref.reports.calibration_figure import calibration_figure
    from caref.results.files import write_atomically

    columns = (evaluated.columns.get(f"candidate_{name}", ()) for name in ("confidence", "correct"))
    pairs = [(f, c) for f, c in zip(*columns, strict=True) if f is not None and c is not None]
    path = out / evaluated.of.name / "calibration.svg"
    if pairs:
        confidences, correct = zip(*pairs, strict=True)
        bins = int(evaluated.evaluation.metrics["calibration_error"].fingerprint["bins"])
        write_atomically(path, calibration_figure(confidences, correct, bins=bins))
    else:
        path.unlink(missing_ok=True)


def _print(evaluated: Sequence[Evaluated], output: str) -> None:
    from caref.cli.tables import markdown_rows, markdown_table, print_records, print_rows, print_table
    from caref.experiments.evaluating import as_run_results
    from caref.results.table import aggregate

    evaluations = [each.evaluation for each in evaluated]
    if output == "json":
        typer.echo(json.dumps([each.model_dump(mode="json") for each in evaluations], indent=2))
        return
    if output == "csv":
        print_records([record for each in evaluations for record in _records(each)], "csv")
        return
    runs = as_run_results(evaluated)
    if len(evaluated) == len(runs) > 1:
        rows = aggregate(runs, _columns(evaluations))
        if output == "markdown":
            typer.echo(markdown_rows(rows))
        else:
            print_rows(rows)
        return
    if len(evaluations) == 1:
        headings, cells = ["value", "", "95 % interval", ""], _values(evaluations[0])
    else:
        headings, cells = _side_by_side(evaluations)
    if output == "markdown":
        typer.echo(markdown_table(headings, cells))
        return
    if len(evaluations) == 1:
        typer.echo(f"{evaluations[0].name}: {evaluations[0].n} predictions")
    print_table(headings, cells)
    for encoder in dict.fromkeys(_encoders(evaluations)):
        typer.echo(f"F1 and nBERT by {encoder}")


def _values(evaluation: Evaluation) -> list[list[str]]:
    """Every value with its interval, and what chance alone would give or why it is undefined."""
    from caref.cli.tables import number_text

    numbers = _numbers(evaluation)
    rows = []
    for name, (value, interval, note) in numbers.items():
        if any(name.removesuffix(end) in numbers for end in NULL if name.endswith(end)):
            continue  # beside the value that it belongs to
        expected, below = (numbers[name + end].value if name + end in numbers else None for end in NULL)
        if expected is not None and below is not None:
            note = f"if calibrated {number_text(expected)}, 95 % below {number_text(below)}"
        told = "undefined" if value is None else f"{value:.0f}" if _is_count(name) else number_text(value)
        rows.append([name, told, " to ".join(number_text(end, like=value) for end in interval or ()), note])
    return rows


def _is_count(name: str) -> bool:
    return name == "n" or name.startswith("n_") or name.endswith("_count")


def _side_by_side(evaluations: Sequence[Evaluation]) -> tuple[list[str], list[list[str]]]:
    """The metrics' main values, a line a set."""
    from caref.cli.tables import number_text
    from caref.results.table import HEADINGS

    columns = _columns(evaluations)
    cells = []
    for evaluation in evaluations:
        numbers = _numbers(evaluation)
        values = [numbers[name].value if name in numbers else None for name in columns]
        told = ["undefined" if value is None else number_text(value) for value in values]
        cells.append([evaluation.name, str(evaluation.n), *told])
    return ["", "n", *(HEADINGS.get(name, name) for name in columns)], cells


def _columns(evaluations: Sequence[Evaluation]) -> list[str]:
    """Those that every table of results has, then the metrics' other main values."""
    from caref.results.table import COLUMNS

    values = {name for each in evaluations for name in _numbers(each)}
    main = [name for each in evaluations for name in each.metrics if name in values]
    return list(dict.fromkeys([*(name for name in COLUMNS if name in values), *main]))


def _records(evaluation: Evaluation) -> Iterator[dict[str, object]]:
    for name, (value, interval, note) in _numbers(evaluation).items():
        low, high = interval or (None, None)
        yield {"set": evaluation.name, "value": name, "is": value, "low": low, "high": high, "note": note}


class _Number(NamedTuple):
    value: float | None
    interval: tuple[float, float] | None
    note: str


def _numbers(evaluation: Evaluation) -> dict[str, _Number]:
    """Every value once, with its interval and, where it is undefined, the reason."""
    numbers: dict[str, _Number] = {}
    for metric in evaluation.metrics.values():
        for name, value in metric.values.items():  # several metrics count the predictions
            numbers.setdefault(name, _Number(value, metric.intervals.get(name), metric.notes.get(name, "")))
    return numbers


def _encoders(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """What computed nBERT."""
    for each in evaluations:
        fingerprint = each.metrics["nbert"].fingerprint if "nbert" in each.metrics else {}
        if fingerprint:
            yield f"{fingerprint['encoder']}, layer {fingerprint['layer']}"
