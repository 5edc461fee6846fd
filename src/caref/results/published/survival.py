"""Which bold numbers of a published table survive a test, as far as means and deviations tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from caref.results.published import AVERAGE, PublishedNumber, PublishedTable
from caref.statistics.decomposition import Decomposition, decompose
from caref.statistics.multiple import holm
from caref.statistics.number import Number
from caref.statistics.unpaired import Moments, Welch, welch

ALPHA = 0.05
SURVIVES = "survives"
NOT_LARGEST = "not the largest"
SAME = "not distinguishable"
NO_DEVIATION = "undefined: no deviation"


@dataclass(frozen=True, slots=True)
class Survival:
    """One bold number held against the others of its block, value and task.

    Attributes:
        bold: The number.
        rival: The largest of the others.
        others: How many they are.
        test: Welch's test, the bold number minus the rival's; None where a deviation is missing.
        p_holm: The largest p-value against any other, corrected for all of them; None likewise.
        p_holm_as_errors: The same, were what stands after the ± the standard error of the mean.
        verdict: ``survives``, ``not distinguishable``, ``not the largest`` or ``undefined: no deviation``.
        verdict_as_errors: The same for `p_holm_as_errors`.
        parts: Of nBERT: where the difference comes from; None of another value, or without the accuracy.
    """

    bold: PublishedNumber
    rival: PublishedNumber
    others: int
    test: Welch | None
    p_holm: float | None
    p_holm_as_errors: float | None
    verdict: str
    verdict_as_errors: str
    parts: Decomposition | None


def survivals(table: PublishedTable) -> list[Survival]:
    """Every bold number that has a rival, in the table's order.

    The tests are unpaired: the deviations are over splits, and that the rows share their splits cannot be
    used without each split's number. An average has no deviation of its own; it is taken from those of its
    tasks, ``sqrt(sum of std^2) / tasks``, as if they were independent.
    """
    found = []
    for number in table.numbers:
        others = [each for each in table.column_of(number) if each != number]
        if number.bold and others:
            found.append(_survival(table, number, others))
    return found


def _survival(table: PublishedTable, number: PublishedNumber, others: Sequence[PublishedNumber]) -> Survival:
    rival = max(others, key=lambda each: each.mean)
    p_values = [_largest_p(table, number, others, as_errors=as_errors) for as_errors in (False, True)]
    return Survival(
        bold=number,
        rival=rival,
        others=len(others),
        test=_welch(table, rival, number, as_errors=False),
        p_holm=p_values[0],
        p_holm_as_errors=p_values[1],
        verdict=_verdict(number, rival, p_values[0]),
        verdict_as_errors=_verdict(number, rival, p_values[1]),
        parts=_parts(table, rival, number) if number.value == "nbert" else None,
    )


def _verdict(number: PublishedNumber, rival: PublishedNumber, p: float | None) -> str:
    if number.mean < rival.mean:
        return NOT_LARGEST
    if p is None:
        return NO_DEVIATION
    return SURVIVES if p < ALPHA and number.mean > rival.mean else SAME


def _largest_p(
    table: PublishedTable, number: PublishedNumber, others: Sequence[PublishedNumber], *, as_errors: bool
) -> float | None:
    tests = [_welch(table, other, number, as_errors=as_errors) for other in others]
    adjusted = [p for p in holm([test.p_value if test else None for test in tests]) if p is not None]
    return max(adjusted) if len(adjusted) == len(tests) else None


def _welch(
    table: PublishedTable, first: PublishedNumber, second: PublishedNumber, *, as_errors: bool
) -> Welch | None:
    groups = [moments(table, each, as_errors=as_errors) for each in (first, second)]
    return welch(*groups) if None not in groups else None  # type: ignore[arg-type]


def moments(table: PublishedTable, number: PublishedNumber, *, as_errors: bool = False) -> Moments | None:
    """Mean, deviation and size of a number; of an average the deviation that its tasks give.

    Args:
        table: Where it stands.
        number: The number.
        as_errors: Whether what stands after the ± is the standard error of the mean.

    Returns:
        None where a deviation is missing.
    """
    deviation = number.std
    if deviation is None and number.task == AVERAGE:
        tasks = table.tasks_of(number)
        stds = [each.std for each in tasks if each.std is not None and each.n == number.n]
        if tasks and len(stds) == len(tasks):
            deviation = math.sqrt(math.fsum(std**2 for std in stds)) / len(stds)
    if deviation is None:
        return None
    return Moments(number.mean, deviation * (math.sqrt(number.n) if as_errors else 1), number.n)


def _parts(table: PublishedTable, first: PublishedNumber, second: PublishedNumber) -> Decomposition | None:
    """Of an average the mean of its tasks' parts, whose sum is the difference of the means of the tasks."""
    if second.task != AVERAGE:
        accuracies = [table.beside(each, "accuracy") for each in (first, second)]
        if accuracies[0] is None or accuracies[1] is None:
            return None
        return decompose(accuracies[0].mean, first.mean, accuracies[1].mean, second.mean)
    tasks = [
        (before, after)
        for before in table.tasks_of(first)
        for after in table.tasks_of(second)
        if before.task == after.task
    ]
    parts = [part for before, after in tasks if (part := _parts(table, before, after)) is not None]
    if not parts or len(parts) < len(tasks):
        return None
    difference = math.fsum(part.difference for part in parts) / len(parts)
    return Decomposition(
        difference,
        _mean([part.accuracy_part for part in parts]),
        _mean([part.explanation_part for part in parts]),
    )


def _mean(parts: Sequence[Number]) -> Number:
    known = [part.value for part in parts if part.value is not None]
    if len(known) < len(parts):
        return next(part for part in parts if part.value is None)
    return Number(math.fsum(known) / len(known))
