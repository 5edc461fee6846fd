"""The command line: one file per subcommand, imported when it is called."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

from caref.errors import CarefError

COMMANDS: dict[str, tuple[str, str]] = {
    "quickstart": (
        "caref.cli.quickstart:quickstart",
        "Compare CAREF with cross-entropy on four small tasks, offline, in some minutes.",
    ),
    "run": (
        "caref.cli.run:run",
        "Train and evaluate on one or more splits; run again, it does what is missing.",
    ),
    "predict": ("caref.cli.predict:predict", "Answer and explain with a trained run."),
    "export": (
        "caref.cli.export:export",
        "Write a trained run as an ordinary adapter, or merged as a plain model.",
    ),
    "push": ("caref.cli.push:push", "Send a trained run to the hub."),
    "evaluate": (
        "caref.cli.evaluate:evaluate",
        "Every metric of predictions that are there: a run's, or any other system's.",
    ),
    "table": ("caref.cli.table:table", "Runs as a table: mean and standard deviation over splits."),
    "compare": (
        "caref.cli.compare:compare",
        "Is a difference real, and where does it come from? Settings on the same splits.",
    ),
    "metrics": (
        "caref.cli.metrics:app",
        "What the automatic metrics are worth, held against people's ratings.",
    ),
    "params": ("caref.cli.params:params", "What each method would train on a model, from its configuration."),
    "properties": (
        "caref.cli.properties:properties",
        "Measure what the paper's table says of each objective.",
    ),
    "list": (
        "caref.cli.listing:list_entries",
        "What there is: tasks, methods, objectives, metrics, presets.",
    ),
    "data": ("caref.cli.data:app", "Check and show a data set."),
}
"""Name to where it is and what it does; only the command that is called is imported."""


STOPPED = "\nstopped; the same command again goes on from here"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 2 bad input, 130 stopped."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "--debug" in given:  # wherever it stands
        given = ["--debug", *(word for word in given if word != "--debug")]
    try:
        sys.exit(build(given)(args=given, prog_name="caref", standalone_mode=False) or 0)
    except KeyboardInterrupt:
        typer.echo(STOPPED, err=True)
        sys.exit(130)
    except Exception as error:
        # What typer itself finds wrong. Its class is Click's, which newer versions keep a copy of.
        told = getattr(error, "format_message", None)
        if told is None:
            raise
        if told():
            context = getattr(error, "ctx", None)
            hint = f"; see: {context.command_path} --help" if context is not None else ""
            message = " ".join(told().replace("Value error, ", "").split()).rstrip(".")
            typer.echo(f"caref: {message}{hint}", err=True)
        sys.exit(getattr(error, "exit_code", 2))


def build(arguments: Sequence[str]) -> typer.Typer:
    """The application, with the one command that these arguments call in full."""
    app = typer.Typer(
        help="Fine-tune a language model to answer and explain, and measure both honestly.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def common(
        version: bool = typer.Option(False, "--version", help="Print the version.", callback=_print_version),
        debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    ) -> None:
        os.environ["CAREF_DEBUG"] = "1" if debug else ""

    called = next((word for word in arguments if not word.startswith("-")), None)
    for name, (path, summary) in COMMANDS.items():
        if name != called:
            app.command(name, help=summary)(_not_called)
            continue
        module, _, attribute = path.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, help=summary)
        else:
            app.command(name, help=f"{summary}\n\n{_details(command)}")(command)
    return app


def told_plainly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Tell a caller's mistake in one line, exit code 2; Ctrl-C in one line, exit code 130."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt:
            typer.echo(STOPPED, err=True)
            raise typer.Exit(130) from None
        except BrokenPipeError:  # whoever read the output has seen enough
            raise
        except (ValueError, OSError) as error:
            if os.environ.get("CAREF_DEBUG"):
                raise
            hint = "" if isinstance(error, CarefError | OSError) else " (caref --debug shows where)"
            typer.echo(f"caref: {_reason(error)}{hint}", err=True)
            raise typer.Exit(2) from None

    return wrapped


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _details(command: Callable[..., Any]) -> str:
    """A command's docstring without its first line, which the summary repeats; a line per paragraph."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")[1:]
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _not_called() -> None:
    """Stands for a command in the list of commands."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from caref import __version__

        typer.echo(f"caref {__version__}")
        raise typer.Exit
