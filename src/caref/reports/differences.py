"""What a report compares two settings by, and what may be said of each difference."""

from __future__ import annotations

from dataclasses import dataclass, replace

from caref.results.comparison import verdict
from caref.results.setting import Splits, columns_of, have
from caref.results.values import SCALED
from caref.statistics.paired import PairedDifference, difference_of, pair
from caref.statistics.sign_flip import split_test


@dataclass(frozen=True, slots=True)
class Paired:
    """A per-example value that two settings are compared by.

    Attributes:
        value: The second setting's, by its name in ``scores.jsonl``.
        name: In words; of `PAIRED`, ``{first}`` stands for the first setting's name.
        unit: Of the difference.
        scale: Turns the value into that unit.
        higher_is_better: Which way is better.
        first_value: The first setting's, where it is another one.
    """

    value: str
    name: str
    unit: str = "points"
    scale: float = 1.0
    higher_is_better: bool = True
    first_value: str | None = None


PAIRED = (
    Paired("correct", "accuracy", scale=100),
    Paired("nbert", "nBERT"),
    Paired("candidate_correct", "likeliest candidate right", scale=100),
    Paired("brier", "Brier score", unit="", higher_is_better=False),
    Paired(
        "brier",
        "Brier score, {first} with its temperature scaled",
        unit="",
        higher_is_better=False,
        first_value=f"brier{SCALED}",
    ),
    Paired(
        f"brier{SCALED}", "Brier score, both with their temperatures scaled", unit="", higher_is_better=False
    ),
)
"""Accuracy and nBERT are of what was written; the others of the candidates' probabilities. What the second
setting gains over the first alone, and not over the first with its temperature scaled, its training need not
have brought."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The second setting minus the first, by one value.

    Attributes:
        paired: Which value.
        of: The difference in the value's unit, `Paired.scale` applied.
        verdict: ``better``, ``worse`` or ``not distinguishable``.
    """

    paired: Paired
    of: PairedDifference
    verdict: str


def differences(first: Splits, second: Splits, first_name: str) -> list[Difference]:
    """Compare two settings on a task, by each of `PAIRED` that at least one example has in both.

    Args:
        first: Seed to split of the first setting.
        second: The same splits of the second.
        first_name: What the first is called.

    Raises:
        CarefError: If the splits are not the same, or a value was not computed in the same way.
    """
    found = []
    for paired in PAIRED:
        before = paired.first_value or paired.value
        if not (have(first, before) and have(second, paired.value)):
            continue
        pairs = pair(*columns_of(first, second, before, paired.value))
        if pairs.ids:
            of = difference_of(pairs).scaled(paired.scale)
            p_splits = split_test(pairs.split_differences).value
            told = verdict(of, of.p_value, p_splits, higher_is_better=paired.higher_is_better)
            found.append(Difference(replace(paired, name=paired.name.format(first=first_name)), of, told))
    return found
