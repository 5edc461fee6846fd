"""Help pages, and what happens before any command runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import caref as package
from caref.cli import COMMANDS, build
from caref.cli.run import run
from caref.experiments.flat import flat_settings

PAGES = (
    (),
    ("run",),
    ("predict",),
    ("table",),
    ("compare",),
    ("params",),
    ("list",),
    ("data",),
    ("data", "check"),
    ("data", "show"),
    ("data", "world"),
    ("quickstart",),
)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from caref.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'torch', 'transformers', 'peft', 'datasets', 'numpy', 'pydantic', 'yaml'}\n"
        "print('imported:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("imported: []\n")
    assert all(name in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=" ".join)
@pytest.mark.parametrize("width", [80, 120])
def test_pages(
    caref: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, page: tuple[str, ...], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", width)
    ended = caref(*page, "--help")
    assert ended.code == 0
    assert ended.err == ""
    assert "Usage: caref" in ended.out
    assert max(map(len, ended.out.splitlines())) <= width
    for leak in ("…", "``", "None means", "None takes", "NoneType", "empty>"):
        assert leak not in ended.out, leak


def test_a_default_of_zero_is_told(caref: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 160)
    monkeypatch.setenv("COLUMNS", "160")
    assert "Default: 0.0." in caref("data", "show", "--help").out


def test_every_setting_of_a_run_is_a_flag(caref: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 200)
    page = caref("run", "--help").out
    table = flat_settings()
    assert [name for name in table if name != "seed" and f"--{name.replace('_', '-')} " not in page] == []
    assert "--splits" in page and "--seeds" in page
    import inspect

    parameters = set(inspect.signature(run).parameters)
    assert set(table) - parameters == {"seed"}


def test_version(caref: Callable[..., Any]) -> None:
    assert caref("--version") == type(caref("--version"))(0, f"caref {package.__version__}\n", "")


def test_without_arguments_it_shows_what_there_is(caref: Callable[..., Any]) -> None:
    ended = caref()
    assert "Usage: caref" in ended.out + ended.err
    assert "quickstart" in ended.out + ended.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nosuch"], "No such command 'nosuch'; see: caref --help"),
        (["data", "nosuch"], "No such command 'nosuch'; see: caref data --help"),
        (["run", "--tsk", "esnli"], "No such option: --tsk"),
        (["run", "--epochs", "many"], "Invalid value for '--epochs': "),
        (["run", "--eval-batch-size", "0"], "Invalid value for '--eval-batch-size'"),
        (["run", "--supervision", "both"], "Invalid value for '--supervision'"),
        (["run", "--precision", "fp8"], "Invalid value for '--precision'"),
        (["table", "--format", "xml"], "Invalid value for '--format'"),
        (["predict"], "Missing argument 'run'; see: caref predict --help"),
        (["table", "a", "b"], "(b); see: caref table --help"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_typer_refuses_is_one_line(caref: Callable[..., Any], arguments: list[str], told: str) -> None:
    assert told.lower() in caref(*arguments).mistake().lower()


def test_only_the_called_command_is_imported() -> None:
    code = (
        "import sys\nfrom caref.cli import build\nbuild(['list'])\n"
        "print([name for name in sys.modules if name.startswith('caref.cli.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['caref.cli.listing']"


def test_debug_shows_the_traceback_wherever_it_stands(caref: Callable[..., Any]) -> None:
    from caref.errors import CarefError

    for arguments in (["--debug", "list", "nosuch"], ["list", "nosuch", "--debug"]):
        with pytest.raises(CarefError, match="unknown kind 'nosuch'"):
            build_and_call(arguments)
    assert "unknown kind 'nosuch'" in caref("list", "nosuch").mistake()


def build_and_call(arguments: list[str]) -> None:
    from caref.cli import main

    main(arguments)


def test_what_a_page_says_is_laid_out_by_the_terminal() -> None:
    """A docstring's own line breaks would be kept by Rich, in the middle of a paragraph."""
    app = build(["params"])
    (command,) = [each for each in app.registered_commands if each.name == "params"]
    assert command.help is not None
    assert all("\n" not in paragraph for paragraph in command.help.split("\n\n"))
