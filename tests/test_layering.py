"""Imports point one way. The table says what each room may know; the rest fails."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import caref

ROOT = Path(caref.__file__).parent

FLOOR = {"errors", "registry", "settings"}
"""The package's own ground: known to all."""

ALLOWED: dict[str, set[str]] = {
    # The interface of an objective calls the kernels. Of losses these know what lies below that interface;
    # only the function that takes CAREF's settings one by one knows their checks.
    "losses": {"errors", "registry", "kernels"},
    "kernels": {"losses.penalties", "losses.reduction", "losses.caref"},
    "tasks": FLOOR,
    "protocol": FLOOR | {"tasks"},
    "models": FLOOR | {"tasks"},
    "methods": FLOOR | {"models"},
    "training": FLOOR | {"losses", "kernels", "models"},
    "generation": FLOOR | {"models", "tasks"},
    "statistics": {"errors"},
    "metrics": FLOOR | {"generation.prediction", "statistics", "__version__"},
    "human": FLOOR | {"generation.prediction", "tasks", "metrics", "statistics"},
    "results": FLOOR | {"generation.prediction", "statistics"},
    "reports": FLOOR | {"generation.prediction", "metrics.calibration", "results", "statistics"},
    "properties": FLOOR | {"losses"},
    "starter": FLOOR | {"tasks", "models", "experiments.stages"},
    "quickstart": FLOOR | {"protocol", "experiments"},
    # These two may import everything below them.
    "experiments": FLOOR
    | {"losses", "tasks", "protocol", "models", "methods", "training", "generation", "metrics", "results"}
    | {"statistics", "__version__"},
    "cli": FLOOR
    | {"losses", "tasks", "protocol", "models", "methods", "training", "metrics", "results"}
    | {"statistics", "human", "experiments", "properties", "quickstart", "reports", "studio", "__version__"},
    "errors": set(),
    "registry": {"errors"},
    "settings": {"errors"},
    "__init__": {"losses", "kernels"},
    "__main__": {"cli"},
}

WITHOUT_TORCH = ("tasks", "protocol", "statistics", "results", "reports", "quickstart")
HEAVY = {"torch", "transformers", "peft", "accelerate", "tokenizers", "safetensors"}


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, at its top or inside a function, typing's included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module
            # `from caref.x import y`: y may be a module.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


SOURCES = sorted(ROOT.rglob("*.py"))


def test_the_table_is_complete() -> None:
    rooms = {room_of(path) for path in SOURCES}
    assert rooms == set(ALLOWED), "a room without a row, or a row without a room"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_what_lies_upstream(path: Path) -> None:
    room = room_of(path)
    for module in imports(path):
        package, _, inner = module.partition(".")
        if package != "caref" or not inner or inner.split(".")[0] == room:
            continue
        parts = inner.split(".")
        prefixes = {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
        longer = {allowed for allowed in ALLOWED[room] if allowed.startswith(f"{inner}.")}
        assert prefixes & ALLOWED[room] or longer, f"{room} imports {module}"


def test_nobody_but_the_top_imports_experiments_or_cli() -> None:
    top = {"cli", "experiments", "reports", "studio", "quickstart", "starter", "__main__"}
    for path in SOURCES:
        if room_of(path) not in top:
            names = {module.removeprefix("caref.").split(".")[0] for module in imports(path)}
            assert not names & {"cli", "experiments"}, path


@pytest.mark.parametrize("path", [p for p in SOURCES if room_of(p) == "losses"], ids=lambda path: path.name)
def test_losses_know_torch_and_the_standard_library_alone(path: Path) -> None:
    outside = {module.split(".")[0] for module in imports(path)} - sys.stdlib_module_names - {"__future__"}
    optional = {"entmax"} if path.stem == "fenchel_young" else set()
    assert outside <= {"torch", "caref"} | optional


@pytest.mark.parametrize(
    "path", [p for p in SOURCES if room_of(p) in WITHOUT_TORCH], ids=lambda path: str(path.relative_to(ROOT))
)
def test_tasks_and_protocol_import_no_torch(path: Path) -> None:
    assert not {module.split(".")[0] for module in imports(path)} & HEAVY


def modules_after(*arguments: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return {
        line.rpartition("|")[2].strip() for line in run.stderr.splitlines() if line.startswith("import time:")
    }


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_the_command_line_answers_without_heavy_imports(argument: str) -> None:
    loaded = modules_after("-m", "caref", argument)
    assert "typer" in loaded
    assert not loaded & (HEAVY | {"datasets", "pandas", "numpy", "pyarrow"})
    if argument == "--help":
        assert not loaded & {"pydantic", "caref.experiments"}


def test_importing_caref_loads_next_to_nothing() -> None:
    loaded = modules_after("-c", "import caref")
    assert "caref" in loaded
    assert not loaded & (HEAVY | {"pydantic", "numpy", "yaml", "rich", "typer"})


@pytest.mark.parametrize(
    "module",
    [
        "caref.tasks",
        "caref.protocol",
        "caref.metrics",
        "caref.results.table",
        "caref.experiments.spec",
        "caref.reports.page",
    ],
)
def test_values_and_tables_load_without_torch(module: str) -> None:
    assert not modules_after("-c", f"import {module}") & {"torch", "transformers", "peft"}
