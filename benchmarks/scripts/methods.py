"""Every method with cross-entropy and with CAREF, on small models: the tables of ``docs/results.md``.

    python benchmarks/scripts/methods.py --models DIR --data DIR --out runs/methods

``--models`` holds ``nle-minilm``, ``--data`` holds ``esnli`` and ``comve``; without them only the starter
world is run. For every method the learning rate is chosen first, among three, with cross-entropy on a split
that is not reported. What is complete is not run again. ``--page-only`` writes the page from what there is;
``--select-only`` ends when the rates are chosen.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from caref.cli.progress import watched
from caref.cli.tables import cell_text, markdown_table
from caref.experiments.flat import spec_from_flat
from caref.experiments.series import missing_runs, run_series
from caref.experiments.spec import RunSpec
from caref.protocol.seeds import FEB_SEEDS
from caref.results.costs import run_costs
from caref.results.paired import compare_runs
from caref.results.result import RunResult
from caref.results.run_directory import RunDirectory
from caref.results.table import HEADINGS, Cell, aggregate

RATES: dict[str, tuple[float, float, float]] = {
    "base": (1e-4, 3e-4, 1e-3),
    "dec": (1e-4, 3e-4, 1e-3),
    "aqkv": (1e-3, 3e-3, 1e-2),
    "laq": (1e-3, 3e-3, 1e-2),
    "aq": (1e-3, 4e-3, 1e-2),
    "lora-r4": (1e-3, 3e-3, 1e-2),
    "lora-r128": (3e-4, 1e-3, 3e-3),
    "adalora": (3e-3, 1e-2, 3e-2),
    "ia3": (1e-2, 3e-2, 1e-1),
    "prefix": (1e-2, 3e-2, 1e-1),
    "prompt": (3e-2, 1e-1, 3e-1),
}
"""Method to the learning rates to choose from."""

OBJECTIVES = ("ce", "caref")
SPLITS = range(5)
SELECTION_SPLIT = 50
PAGE = Path(__file__).resolve().parents[2] / "docs" / "results.md"
COLUMNS = ("accuracy", "f1_given_right", "nbert", "broken")
SHARED: dict[str, Any] = {"shots": 48, "batch_size": 8, "encoder": "offline"}


@dataclass(frozen=True, slots=True)
class World:
    """A model and the tasks that it is tuned on."""

    model: str
    tasks: tuple[str, ...]
    settings: dict[str, Any]
    data: dict[str, str] = field(default_factory=dict)

    def specs(
        self, method: str, rate: float, objective: str, task: str, splits: Sequence[int]
    ) -> list[RunSpec]:
        """One setting on several splits."""
        given = {**SHARED, **self.settings, "model": self.model, "task": task, "method": method}
        if task in self.data:
            given["data"] = self.data[task]
        spec = spec_from_flat({**given, "objective": objective, "learning_rate": rate})
        return [spec.with_seed(FEB_SEEDS[split]) for split in splits]


def worlds(models: Path | None, data: Path | None) -> list[World]:
    starter = World(
        "starter",
        ("starter_nli", "starter_choice5"),
        {"epochs": 25, "eval_size": 120, "max_new_tokens": 32},
    )
    if models is None or data is None:
        return [starter]
    tasks = ("esnli", "comve")
    real = World(
        str(models / "nle-minilm"),
        tasks,
        {"epochs": 6, "eval_size": 60, "max_new_tokens": 40},
        {task: str(data / task) for task in tasks},
    )
    return [starter, real]


def selection(world: World) -> dict[tuple[str, float], list[RunSpec]]:
    """The runs by which rates are chosen: method and rate to a run for each task."""
    return {
        (method, rate): [
            spec for task in world.tasks for spec in world.specs(method, rate, "ce", task, [SELECTION_SPLIT])
        ]
        for method, rates in RATES.items()
        for rate in rates
    }


def chosen_rates(world: World, root: Path) -> dict[str, float]:
    """For every method the rate with the largest mean nBERT over the tasks."""
    scores = {
        key: statistics.fmean(
            results(specs, root)[index].value("nbert") or 0.0 for index in range(len(specs))
        )
        for key, specs in selection(world).items()
    }
    return {method: max(rates, key=lambda rate: scores[method, rate]) for method, rates in RATES.items()}


def reported(world: World, rates: dict[str, float]) -> list[RunSpec]:
    """Every run of the tables, split by split, so that a stopped series has a part of each row."""
    return [
        spec
        for split in SPLITS
        for task in world.tasks
        for method in RATES
        for objective in OBJECTIVES
        for spec in world.specs(method, rates[method], objective, task, [split])
    ]


def results(specs: Sequence[RunSpec], root: Path) -> list[RunResult]:
    return [RunDirectory(root / spec.directory_name).read_result() for spec in specs]


def carry_out(specs: Sequence[RunSpec], root: Path, workers: int) -> None:
    missing = missing_runs(specs, root)
    with watched(runs=len(missing), already=len(specs) - len(missing)) as progress:
        run_series(specs, root, workers=workers, threads=1, progress=progress)


def task_table(world: World, task: str, rates: dict[str, float], root: Path) -> str:
    """One row for each method and objective."""
    rows, cost_names = [], ["trainable_percent", "seconds", "peak_mib", "saved_mib"]
    for method in RATES:
        sides = {}
        for objective in OBJECTIVES:
            specs = world.specs(method, rates[method], objective, task, SPLITS)
            directories = [RunDirectory(root / spec.directory_name) for spec in specs]
            sides[objective] = [directory for directory in directories if directory.is_complete]
        for objective, directories in sides.items():
            if not directories:
                continue
            costs = {each.read_result().run_id: run_costs(each) for each in directories}
            (row,) = aggregate(((each.read_result(), "") for each in directories), COLUMNS, costs)
            difference = "" if objective == "ce" else difference_text(sides["ce"], directories)
            rows.append(
                [
                    f"`{method}`",
                    f"`{objective}`",
                    f"{rates[method]:g}",
                    str(row.splits),
                    *(cell_text(row.cells[name]) for name in COLUMNS),
                    difference,
                    *(cost_text(row.cells[name]) for name in cost_names),
                ]
            )
    measured, cost = ([HEADINGS[name] for name in names] for names in (COLUMNS, cost_names))
    headings = ["method", "objective", "rate", "splits", *measured, "nBERT, CAREF - CE", *cost]
    return markdown_table(headings, rows, text_columns=2)


def cost_text(cell: Cell) -> str:
    """The mean alone."""
    return "" if cell.mean is None else f"{cell.mean:.4g}"


def difference_text(ce: list[RunDirectory], caref: list[RunDirectory]) -> str:
    """The difference on the splits that both have, with its 95 % interval."""
    common = {each.read_result().seed for each in ce} & {each.read_result().seed for each in caref}
    first, second = ([each for each in side if each.read_result().seed in common] for side in (ce, caref))
    if not common:
        return ""
    found = compare_runs(first, second, "nbert")
    return f"{found.mean:+.1f} ({found.low:+.1f} to {found.high:+.1f})"


def page_text(page: str, tables: dict[str, str]) -> str:
    """The page with each table put between its two marks.

    Raises:
        SystemExit: If a mark is missing.
    """
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise SystemExit(f"the page needs {begin} and {end}, once each")
        head, _, rest = page.partition(begin)
        page = f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    return page


def main(given: argparse.Namespace) -> None:
    tables = {}
    for world in worlds(given.models, given.data):
        if not given.page_only:
            to_choose = [spec for specs in selection(world).values() for spec in specs]
            carry_out(to_choose, given.out, given.workers)
        if given.select_only:
            print(world.model, chosen_rates(world, given.out))
            continue
        if not given.page_only:
            carry_out(reported(world, chosen_rates(world, given.out)), given.out, given.workers)
        rates = chosen_rates(world, given.out)
        tables |= {task: task_table(world, task, rates, given.out) for task in world.tasks}
    if not tables:
        return
    given.page.write_text(page_text(given.page.read_text(encoding="utf-8"), tables), encoding="utf-8")
    print(f"tables written to {given.page}: {', '.join(tables)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, help="folder that holds nle-minilm")
    parser.add_argument("--data", type=Path, help="folder that holds esnli and comve")
    parser.add_argument("--out", type=Path, default=Path("runs/methods"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--select-only", action="store_true", help="choose the rates, report nothing")
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    main(parser.parse_args())
