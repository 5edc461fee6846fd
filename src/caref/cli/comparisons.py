"""How ``caref compare`` prints settings beside a reference."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import typer

from caref.cli.comparison_cells import (
    UNDEFINED,
    comparison_cells,
    comparison_headings,
    comparison_record,
    decomposition_record,
    factor_cells,
    factor_headings,
    p_text,
    ranking_cells,
    ranking_record,
)
from caref.cli.tables import console, markdown_table, print_records, print_table
from caref.reports import words
from caref.results.comparison import ALPHA, Comparison
from caref.results.factors import DecomposedDifference
from caref.results.ranking import RankedBy
from caref.statistics.sign_flip import FEWEST_SPLITS

Output = Literal["text", "json", "csv", "markdown"]


@dataclass(frozen=True, slots=True)
class Compared:
    """All that a comparison found.

    Attributes:
        comparisons: Task by task, value by value, setting by setting.
        decomposed: The differences in nBERT as their parts.
        rankings: Of three settings or more.
        see: The difference, in points, that the splits are counted for.
        splits_left_out: Splits that a setting lacked.
    """

    comparisons: Sequence[Comparison]
    decomposed: Sequence[DecomposedDifference]
    rankings: Sequence[RankedBy]
    see: float
    splits_left_out: int

    @property
    def splits(self) -> int:
        """The largest number of splits of a task."""
        return max((each.difference.splits for each in self.comparisons if each.difference), default=0)


def print_compared(compared: Compared, output: Output) -> None:
    """Print a comparison; as CSV the differences alone, without the parts of nBERT and the rankings."""
    records = [comparison_record(each) for each in compared.comparisons]
    if output == "csv":
        print_records(records, "csv")
    elif output == "json":
        found = {
            "comparisons": records,
            "decomposition": [decomposition_record(each) for each in compared.decomposed],
            "rankings": [ranking_record(each) for each in compared.rankings],
            "splits_left_out": compared.splits_left_out,
            "notes": notes(compared),
        }
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        for title, headings, cells, text_columns in _tables(compared):
            print_titled(title, headings, cells, text_columns=text_columns, markdown=output == "markdown")
        print_notes(notes(compared), markdown=output == "markdown")


def print_titled(
    title: str,
    headings: Sequence[str],
    cells: Sequence[Sequence[str]],
    *,
    text_columns: int = 1,
    markdown: bool = False,
) -> None:
    """Print a table below what it is."""
    if markdown:
        typer.echo(f"### {title}\n\n{markdown_table(headings, cells, text_columns=text_columns)}\n")
    else:
        console().print(title, soft_wrap=True, markup=False)
        print_table(headings, cells, text_columns=text_columns)


def print_notes(notes: Sequence[str], *, markdown: bool) -> None:
    """Print sentences, a line each."""
    out = console()
    for note in notes:
        text = f"{words.capital(note)}."
        if markdown:
            typer.echo(f"- {text}")
        else:
            out.print(text, soft_wrap=True, markup=False)


_Table = tuple[str, list[str], list[list[str]], int]


def _tables(compared: Compared) -> Iterator[_Table]:
    for (task, reference), rows in groupby(compared.comparisons, lambda each: (each.task, each.reference)):
        own = list(rows)
        splits = max((each.difference.splits for each in own if each.difference), default=0)
        where = f"{task}, " if task else ""
        yield (
            f"{where}{counted(splits, 'split')}: compared with {reference}",
            comparison_headings(reference, compared.see),
            [comparison_cells(each) for each in own],
            2,
        )
        parts = [each for each in compared.decomposed if each.task == task]
        if parts:
            title = f"{where}nBERT = accuracy × F1 given right, and a difference in it as their parts"
            yield title, factor_headings(), list(factor_cells(parts)), 1
    for ranked in compared.rankings:
        found = ranked.ranking
        p, critical = found.p_value.value, found.critical_difference.value
        yield (
            f"{ranked.value.heading}, ranked over {counted(found.blocks, 'split')} of all tasks: "
            f"p (Friedman) {UNDEFINED if p is None else p_text(p)}, critical difference (Nemenyi) "
            f"{UNDEFINED if critical is None else words.number(critical, 2)}",
            ["setting", "mean rank", "group"],
            ranking_cells(found),
            1,
        )


def notes(compared: Compared) -> list[str]:
    """How to read the numbers, how far they carry, and why one is undefined."""
    return [*_reading(compared), *_limits(compared), *dict.fromkeys(_reasons(compared))]


def _reading(compared: Compared) -> Iterator[str]:
    settings, see = len({each.setting for each in compared.comparisons}), compared.see
    yield (
        "a difference is the setting's mean minus the reference's; its interval is a bootstrap over splits "
        "and the examples in each"
    )
    yield (
        "p over examples flips the signs of examples: these trained models on new examples; p over splits "
        "those of splits: new draws of training examples"
    )
    yield (
        f"Holm's p is that over examples corrected for {counted(settings, 'setting')}; a difference is "
        f"called one where the interval leaves 0 out, Holm's p is below {ALPHA:g} and so is, from "
        f"{FEWEST_SPLITS} splits on, the p over splits"
    )
    yield (
        f"splits for {see:g}: how many a paired t-test over splits needs for a chance of 80 % to see "
        f"{see:g} point{'' if see == 1 else 's'}, or {see / 100:g} of a value without a unit"
    )
    yield "the effect size d_z is the mean of the splits' differences by their deviation"
    if any(not each.value.same_column for each in compared.comparisons):
        yield (
            "+ T: after temperature scaling; what the reference gains by it is no merit of the "
            "other setting's training"
        )
    if compared.rankings:
        yield (
            "settings that share a letter cannot be told apart; splits count as independent, which those of "
            "one task, drawn from one pool, are not quite"
        )


def _limits(compared: Compared) -> Iterator[str]:
    families = len({(each.task, each.value.name) for each in compared.comparisons if each.difference})
    if families > 1 and compared.splits > 1:
        expected = words.number(families * ALPHA, 1)
        yield (
            f"there are {families} comparisons by value and task, and no correction over these: were there "
            f"no difference at all, up to {expected} of them would be expected to show one"
        )
    if compared.splits == 1:
        yield (
            "there is one split: interval and p speak of these trained models on new examples; of the "
            "settings nothing can be said"
        )
    elif 1 < compared.splits < words.FEW_SPLITS:
        yield words.too_narrow(compared.splits)
    if compared.splits_left_out:
        yield f"{counted(compared.splits_left_out, 'split')} left out that a setting lacks"


def _reasons(compared: Compared) -> Iterator[str]:
    for each in compared.comparisons:
        for name, found in (
            ("p over splits", each.p_splits),
            ("effect size", each.effect),
            ("splits needed", each.needed),
        ):
            if found.value is None:
                yield f"{name}: undefined, {found.note}"
        if each.left_out:
            yield (
                f"{f'{each.task}, ' if each.task else ''}{each.value.heading}, {each.setting}: "
                f"{counted(each.left_out, 'pair')} left out, without the value in both settings"
            )
    for part in compared.decomposed:
        if part.parts.accuracy_part.value is None:
            yield f"parts of nBERT, {part.setting}: undefined, {part.parts.accuracy_part.note}"
    for ranked in compared.rankings:
        if ranked.ranking.p_value.value is None:
            yield f"ranking by {ranked.value.heading}: undefined, {ranked.ranking.p_value.note}"


def counted(number: int, what: str) -> str:
    """A number and what it counts.

    Example:
        >>> counted(1, "split"), counted(3500, "pair")
        ('1 split', '3,500 pairs')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
