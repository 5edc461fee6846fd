"""Numbers and differences in words, the same on a page and on the terminal."""

from __future__ import annotations

from collections import Counter

from caref.reports.summary import ALPHA, Difference, Summary, Value
from caref.results.table import HEADINGS

FEW_SPLITS = 10
"""With fewer, the bootstrap interval is told to be too narrow."""

VALUE_HEADINGS = {**HEADINGS, "calibration_error_95": "if calibrated, below"}
"""The name of a summarised value to its heading."""

UNDEFINED = "–"
MINUS = "−"


def number(value: float | None, digits: int, *, sign: bool = False) -> str:
    """A number with so many digits after the point, its minus a minus.

    Example:
        >>> number(-1.25, 1), number(2, 1, sign=True), number(None, 1)
        ('−1.2', '+2.0', '–')
    """
    if value is None:
        return UNDEFINED
    text = f"{value:{'+' if sign else ''}.{digits}f}"
    # What rounds to 0 has no sign.
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", MINUS)


def cell(name: str, value: Value) -> str:
    """A value's mean and, over two splits or more, ± its standard deviation.

    Example:
        >>> cell("accuracy", Value([50.0, 60.0])), cell("calibration_error", Value([0.125]))
        ('55.0 ± 7.1', '0.125')
    """
    digits = 3 if name.startswith("calibration_error") else 1
    deviation = "" if value.std is None else f" ± {number(value.std, digits)}"
    return f"{number(value.mean, digits)}{deviation}"


def p_value(p: float) -> str:
    """A p-value as a reader wants it.

    Example:
        >>> p_value(0.00001), p_value(0.0312), p_value(0.5)
        ('< 0.001', '= 0.031', '= 0.50')
    """
    if p < 0.001:
        return "< 0.001"
    return f"= {p:.3f}" if p < 0.1 else f"= {p:.2f}"


def amount(difference: Difference, value: float, *, sign: bool = True) -> str:
    """A difference, or an end of its interval, without its unit."""
    return number(value, 1 if difference.paired.unit else 3, sign=sign)


def interval(difference: Difference) -> str:
    """The 95 % interval."""
    return f"{amount(difference, difference.of.low)} to {amount(difference, difference.of.high)}"


def sentence(difference: Difference, compared: tuple[str, str]) -> str:
    """What a difference says, and no more than that."""
    first, second = compared
    of, name = difference.of, difference.paired.name
    unit = f" {difference.paired.unit}" if difference.paired.unit else ""
    evidence = f"95 % interval {interval(difference)}, p {p_value(of.p_value)}"
    if difference.verdict == "not distinguishable":
        return (
            f"{name}: {second} is not distinguishable from {first} here: "
            f"{amount(difference, of.mean)}{unit} ({evidence})"
        )
    by = amount(difference, abs(of.mean), sign=False)
    return f"{name}: {second} is {difference.verdict} than {first} by {by}{unit} ({evidence})"


def overview(summary: Summary) -> list[str]:
    """Every compared value over all tasks, and how much of that chance explains."""
    first, second = summary.compared
    tasks = [task for task in summary.tasks if task.differences]
    if not tasks:
        return []
    told = []
    for paired in [difference.paired for difference in tasks[0].differences]:
        of_all = [each.verdict for task in tasks for each in task.differences if each.paired == paired]
        counts = Counter(of_all)
        if counts["not distinguishable"] == len(of_all):
            tasks_told = "this task" if len(of_all) == 1 else f"any of {len(of_all)} tasks"
            told.append(f"{paired.name}: {second} is not distinguishable from {first} on {tasks_told}")
        else:
            told.append(
                f"{paired.name}: {second} is better than {first} on {counts['better']} of {len(of_all)} "
                f"tasks, worse on {counts['worse']}, not distinguishable on {counts['not distinguishable']}"
            )
    return told


def caution(summary: Summary) -> list[str]:
    """How far the comparisons carry."""
    comparisons = sum(len(task.differences) for task in summary.tasks)
    splits = max((each.of.splits for task in summary.tasks for each in task.differences), default=0)
    told = []
    if comparisons > 1:
        told.append(
            f"these are {comparisons} comparisons, each at the level of {100 * ALPHA:.0f} %: were there no "
            f"difference at all, {number(comparisons * ALPHA, 1)} of them would still be expected to show one"
        )
    if splits == 1:
        told.append("there is one split: the interval knows nothing of other draws of training examples")
    elif 1 < splits < FEW_SPLITS:
        told.append(
            f"there are {splits} splits: the interval is too narrow for a statement about other draws of "
            "training examples"
        )
    return told


def verdict(difference: Difference, compared: tuple[str, str]) -> str:
    """A difference's verdict alone, for a row that has its numbers already."""
    first, second = compared
    if difference.verdict == "not distinguishable":
        return f"{second} is not distinguishable from {first} here"
    return f"{second} is {difference.verdict} than {first}"


def capital(text: str) -> str:
    """A sentence's first letter as a capital; names such as nBERT keep theirs.

    Example:
        >>> capital("accuracy: better"), capital("nBERT: worse")
        ('Accuracy: better', 'nBERT: worse')
    """
    return text if text[1:2].isupper() else text[:1].upper() + text[1:]
