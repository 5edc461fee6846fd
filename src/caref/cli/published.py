"""How ``caref compare`` prints which bold numbers of a published table survive."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from caref.cli.comparison_cells import UNDEFINED, optional, p_text
from caref.cli.comparisons import Output, counted, print_notes, print_titled
from caref.cli.tables import print_records
from caref.reports import words
from caref.results.published import PublishedTable
from caref.results.published.consistency import inconsistencies, published_factors
from caref.results.published.survival import SURVIVES, Survival, survivals
from caref.statistics.decomposition import Decomposition


def print_published(table: PublishedTable, output: Output) -> None:
    """Print a table's factors, what its bold numbers are held against, and what does not fit together."""
    found, odd = survivals(table), inconsistencies(table)
    if output == "csv":
        print_records([_record(each) for each in found], "csv")
        return
    if output == "json":
        everything = {
            "table": table.name,
            "bold": [_record(each) for each in found],
            "factors": list(_factor_records(table)),
            "inconsistencies": odd,
            "notes": _notes(found),
        }
        typer.echo(json.dumps(everything, indent=2, ensure_ascii=False, allow_nan=False))
        return
    markdown = output == "markdown"
    factors = _factor_cells(table)
    if factors is not None:
        title = f"{table.name}: accuracy × F1 given right = nBERT, in percent"
        print_titled(title, *factors, text_columns=2, markdown=markdown)
    print_titled(
        f"{table.name}: {counted(len(found), 'bold number')}, each held against the others of its block",
        ["block", "task", "value", "bold", "best other", "difference", "95 % interval", "p", "p, Holm", "g",
         "verdict", "if ± is an error"],
        [_cells(each) for each in found],
        text_columns=5,
        markdown=markdown,
    )  # fmt: skip
    parts = [_part_cells(each, each.parts) for each in found if each.parts is not None]
    if parts:
        print_titled(
            f"{table.name}: where the bold numbers' differences in nBERT come from",
            ["block", "task", "bold", "best other", "difference", "by accuracy", "by explanations"],
            parts,
            text_columns=4,
            markdown=markdown,
        )
    print_notes(_notes(found), markdown=markdown)
    print_notes([f"inconsistent: {each}" for each in odd], markdown=markdown)


def _cells(each: Survival) -> list[str]:
    test = each.test
    if test is None:
        interval, p, g = [UNDEFINED] * 3
    else:
        interval = " to ".join(words.number(end, 2, sign=True) for end in (test.low, test.high))
        p, g = p_text(test.p_value), optional(test.hedges_g, 2, sign=True)
    return [
        each.bold.block,
        each.bold.task,
        each.bold.value,
        *_sides(each),
        words.number(each.bold.mean - each.rival.mean, 2, sign=True),
        interval,
        p,
        UNDEFINED if each.p_holm is None else p_text(each.p_holm),
        g,
        each.verdict,
        each.verdict_as_errors,
    ]


def _part_cells(each: Survival, parts: Decomposition) -> list[str]:
    return [
        each.bold.block,
        each.bold.task,
        *_sides(each),
        words.number(parts.difference, 2, sign=True),
        optional(parts.accuracy_part, 2, sign=True),
        optional(parts.explanation_part, 2, sign=True),
    ]


def _sides(each: Survival) -> list[str]:
    return [f"{side.model} {words.number(side.mean, 2)}" for side in (each.bold, each.rival)]


def _record(each: Survival) -> dict[str, Any]:
    test, parts = each.test, each.parts
    return {
        "block": each.bold.block,
        "task": each.bold.task,
        "value": each.bold.value,
        "bold": each.bold.model,
        "bold_mean": each.bold.mean,
        "best_other": each.rival.model,
        "best_other_mean": each.rival.mean,
        "others": each.others,
        "difference": each.bold.mean - each.rival.mean,
        "low": test.low if test else None,
        "high": test.high if test else None,
        "p": test.p_value if test else None,
        "hedges_g": test.hedges_g.value if test else None,
        "p_holm": each.p_holm,
        "verdict": each.verdict,
        "p_holm_if_errors": each.p_holm_as_errors,
        "verdict_if_errors": each.verdict_as_errors,
        "accuracy_part": parts.accuracy_part.value if parts else None,
        "explanation_part": parts.explanation_part.value if parts else None,
        "parts_note": parts.accuracy_part.note if parts else "",
    }


def _factor_records(table: PublishedTable) -> Iterator[dict[str, Any]]:
    for accuracy, f1, nbert in published_factors(table):
        yield {
            "block": accuracy.block,
            "model": accuracy.model,
            "task": accuracy.task,
            "accuracy": accuracy.mean,
            "f1_given_right": f1,
            "nbert": nbert.mean,
        }


def _factor_cells(table: PublishedTable) -> tuple[list[str], list[list[str]]] | None:
    """A row of each model, a column of each task; None of a table without both values."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for each in _factor_records(table):
        f1 = UNDEFINED if each["f1_given_right"] is None else words.number(each["f1_given_right"], 2)
        told = f"{words.number(each['accuracy'], 2)} × {f1} = {words.number(each['nbert'], 2)}"
        rows.setdefault((each["block"], each["model"]), {})[each["task"]] = told
    tasks = list(dict.fromkeys(task for row in rows.values() for task in row))
    cells = [[*place, *(row.get(task, "") for task in tasks)] for place, row in rows.items()]
    return (["block", "model", *tasks], cells) if rows else None


def _notes(found: Sequence[Survival]) -> list[str]:
    survive = sum(each.verdict == SURVIVES for each in found)
    as_errors = sum(each.verdict_as_errors == SURVIVES for each in found)
    return [
        f"{survive} of {counted(len(found), 'bold number')} survive if what stands after the ± is the "
        f"deviation over splits, {as_errors} if it is the standard error of the mean",
        "a bold number survives if it is the largest of its block, value and task, and Welch's test tells it "
        "from each of the others with Holm's correction over these; over the bold numbers there is none",
        "the tests are unpaired: if the rows share their splits, and do well and badly on the same ones, a "
        "paired test would see more; that takes each split's number, which a table does not have",
        "an average's deviation is the root of the sum of its tasks' squared deviations, over their number, "
        "as if tasks were independent; the parts of an average are the means of its tasks' parts",
        "the effect size g is Hedges': the difference by the pooled deviation, freed of its bias",
    ]
