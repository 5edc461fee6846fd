"""What a published table's numbers say of each other: nBERT's factors, and what does not fit together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

from caref.results.published import AVERAGE, PublishedNumber, PublishedTable

ROUNDED = 0.01 + 1e-9
"""How far an average may be from the mean of its tasks where all of them have two digits after the point."""


def published_factors(
    table: PublishedTable,
) -> Iterator[tuple[PublishedNumber, float | None, PublishedNumber]]:
    """Every accuracy and its nBERT, between them the F1 given right in percent; None of an accuracy of 0."""
    for number in table.numbers:
        nbert = table.beside(number, "nbert")
        if number.value == "accuracy" and nbert is not None:
            yield number, 100 * nbert.mean / number.mean if number.mean else None, nbert


def inconsistencies(table: PublishedTable) -> list[str]:
    """What does not fit together in a table, in words."""
    return [*_bold(table), *_averages(table), *_impossible(table), *_repeated(table)]


def _bold(table: PublishedTable) -> Iterator[str]:
    ordered = sorted(table.numbers, key=_column)
    for (block, value, task), column in groupby(ordered, key=_column):
        numbers = list(column)
        largest, bold = max(each.mean for each in numbers), [each for each in numbers if each.bold]
        where = f"{block}, {task}, {value}"
        best = " and ".join(f"{each.model} {each.mean:.2f}" for each in numbers if each.mean == largest)
        for each in bold:
            if each.mean < largest:
                yield f"{where}: {each.model} {each.mean:.2f} is bold; the largest: {best}"
        if not bold:
            yield f"{where}: no number is bold; the largest: {best}"


def _column(number: PublishedNumber) -> tuple[str, str, str]:
    return number.block, number.value, number.task


def _averages(table: PublishedTable) -> Iterator[str]:
    for number in table.numbers:
        tasks = table.tasks_of(number) if number.task == AVERAGE else []
        if not tasks:
            continue
        mean = math.fsum(each.mean for each in tasks) / len(tasks)
        if abs(mean - number.mean) > ROUNDED:
            yield (
                f"{number.block}, {number.model}, {number.value}: the average is given as {number.mean:.2f}; "
                f"the mean of its tasks is {mean:.2f}"
            )


def _impossible(table: PublishedTable) -> Iterator[str]:
    for accuracy, f1, nbert in published_factors(table):
        if f1 is None or f1 > 100:
            yield (
                f"{accuracy.block}, {accuracy.model}, {accuracy.task}: an nBERT of {nbert.mean:.2f} is more "
                f"than an accuracy of {accuracy.mean:.2f} allows"
            )


def _repeated(table: PublishedTable) -> Iterator[str]:
    seen: dict[tuple[str, str, str], PublishedNumber] = {}
    for number in table.numbers:
        first = seen.setdefault((number.model, number.task, number.value), number)
        if (first.mean, first.std) != (number.mean, number.std):
            yield (
                f"{number.model}, {number.task}, {number.value}: {first.mean:.2f} in {first.block}, "
                f"{number.mean:.2f} in {number.block}"
            )
