"""``caref list``: what there is."""

from __future__ import annotations

import inspect
import shutil
import sys
import textwrap
from collections.abc import Collection
from typing import Annotated, Any

import typer

from caref.cli import told_plainly
from caref.errors import UnknownNameError

KINDS = ("tasks", "methods", "objectives", "metrics", "presets")


@told_plainly
def list_entries(
    kind: Annotated[str | None, typer.Argument(help=f"One of {', '.join(KINDS)}; all without it.")] = None,
) -> None:
    """List the entries of the registries, plug-ins included."""
    if kind is not None and kind not in KINDS:
        raise UnknownNameError(f"unknown kind {kind!r}; there are: {', '.join(KINDS)}")
    for each in (kind,) if kind else KINDS:
        typer.secho(each, bold=True)
        for name, told in _entries(each):
            typer.echo(_hanging(f"  {name:<20}{told.replace('`', '')}"))


def _hanging(line: str) -> str:
    """Broken at the terminal's width, under its own column; left whole for a file or a pipe."""
    if not sys.stdout.isatty():
        return line
    width = max(60, shutil.get_terminal_size().columns)
    return textwrap.fill(line, width, subsequent_indent=" " * 22)


def _entries(kind: str) -> list[tuple[str, str]]:
    from caref.losses import OBJECTIVES
    from caref.methods import METHODS
    from caref.metrics import METRICS
    from caref.settings import declared_settings
    from caref.tasks import TASKS, get_task
    from caref.training.settings import PRESETS

    if kind == "tasks":
        return [(name, _of_task(get_task(name), declared_settings(entry))) for name, entry in TASKS.items()]
    if kind == "methods":
        return [(name, method.summary) for name, method in METHODS.items()]
    if kind == "presets":
        return [(name, _of_preset(values)) for name, values in PRESETS.items()]
    return [
        (name, _first_line(entry))
        for name, entry in (OBJECTIVES if kind == "objectives" else METRICS).items()
    ]


def _of_task(task: Any, settings: Collection[str]) -> str:
    answers = ", ".join(task.labels) or "choices of its own for each example"
    if task.generate is not None:
        origin = "generated"
    else:
        origin = f"formats: {', '.join(each.name for each in task.formats)}"
    told = [answers, origin, f"settings: {', '.join(settings)}" if settings else "", task.licence]
    return "; ".join(part for part in told if part)


def _of_preset(values: dict[str, Any]) -> str:
    return (
        ", ".join(f"{name} {value}" for name, value in values.items()) or "the defaults of caref run --help"
    )


def _first_line(entry: type) -> str:
    return (inspect.getdoc(entry) or "").splitlines()[0]
