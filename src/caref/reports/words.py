"""Numbers and differences in words, the same on a page and on the terminal."""

from __future__ import annotations

from collections import Counter

from caref.reports.differences import Difference, Paired
from caref.reports.summary import Summary, TaskSummary, Value
from caref.results.comparison import ALPHA
from caref.results.table import HEADINGS
from caref.statistics.bootstrap import Interval

FEW_SPLITS = 10
"""With fewer, the bootstrap interval is told to be too narrow."""

VALUE_HEADINGS = {**HEADINGS, "nll": "NLL", "calibration_error_95": "if calibrated, below"}
"""The name of a summarised value to its heading."""

DIGITS = {"nll": 2, "calibration_error": 3, "calibration_error_95": 3}
"""After the point, of a summarised value; 1 of those that are not here: percentages."""

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
    digits = DIGITS.get(name, 1)
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
    of, name, second = difference.of, difference.paired.name, compared[1]
    first = _baseline(difference.paired, compared[0])
    unit = f" {difference.paired.unit}" if difference.paired.unit else ""
    evidence = f"95 % interval {interval(difference)}, p {p_value(of.p_value)}"
    if difference.verdict == "not distinguishable":
        return (
            f"{name}: {second} is not distinguishable from {first} here: "
            f"{amount(difference, of.mean)}{unit} ({evidence})"
        )
    by = amount(difference, abs(of.mean), sign=False)
    return f"{name}: {second} is {difference.verdict} than {first} by {by}{unit} ({evidence})"


def _baseline(paired: Paired, first: str) -> str:
    """What the second setting is compared with."""
    return first if paired.first_value is None else f"what temperature scaling alone makes of {first}"


def parts(task: TaskSummary) -> list[str]:
    """Where a task's difference in nBERT comes from: a sentence, or none where nBERT was not computed."""
    found = task.nbert_parts
    if found is None:
        return []
    accuracy, explanations = found.parts.accuracy_part, found.parts.explanation_part
    if accuracy.value is None or explanations.value is None:
        return [f"nBERT: no parts of the difference: {accuracy.note}"]
    difference, *both = (
        number(value, 1, sign=True) for value in (found.parts.difference, accuracy.value, explanations.value)
    )
    within = _within("95 % interval ", found.accuracy_interval), _within("", found.explanation_interval)
    return [
        f"nBERT: of the {difference} points, {both[0]} by accuracy{within[0]}, "
        f"{both[1]} by explanations of right answers{within[1]}"
    ]


def _within(what: str, found: Interval | None) -> str:
    if found is None:
        return ""
    low, high = (number(end, 1, sign=True) for end in found)
    return f" ({what}{low} to {high})"


def temperature(summary: Summary) -> list[str]:
    """What a comparison with temperature scaling is, where there is one."""
    first, second = summary.compared
    if all(each.paired.first_value is None for task in summary.tasks for each in task.differences):
        return []
    return [
        "temperature scaling divides the logarithms of the candidates' probabilities by one number, fitted "
        f"to other answers than those it is used on, and trains nothing: a gain of {second} that is gone "
        f"once {first} is scaled takes no training"
    ]


def overview(summary: Summary) -> list[str]:
    """Every compared value over all tasks, and how much of that chance explains."""
    second = summary.compared[1]
    found = [difference for task in summary.tasks for difference in task.differences]
    told = []
    for paired in dict.fromkeys(difference.paired for difference in found):
        of_all = [each.verdict for each in found if each.paired == paired]
        first, counts = _baseline(paired, summary.compared[0]), Counter(of_all)
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
        told.append(too_narrow(splits))
    return told


def too_narrow(splits: int) -> str:
    """What fewer splits than `FEW_SPLITS` do to an interval."""
    return (
        f"there are {splits} splits: the interval is too narrow for a statement about other draws of "
        "training examples"
    )


def verdict(difference: Difference, compared: tuple[str, str]) -> str:
    """A difference's verdict alone, for a row that has its numbers already."""
    first, second = compared
    if difference.paired.first_value is not None:
        first = f"scaled {first}"
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
