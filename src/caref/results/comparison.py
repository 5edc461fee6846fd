"""Settings compared with a reference on the same splits: is a difference real?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from caref.errors import CarefError, DataError
from caref.results.setting import Setting, Splits, columns_of, have
from caref.results.values import DEFAULTS, ComparedValue, value_named, with_temperature
from caref.statistics.effect import deviation, effect_size
from caref.statistics.multiple import holm
from caref.statistics.number import Number
from caref.statistics.paired import PairedDifference, difference_of, pair
from caref.statistics.power import splits_needed
from caref.statistics.sign_flip import split_test

ALPHA = 0.05
"""A difference is called one where Holm's p and, where there is one, the p over splits are below this and
the 95 % interval leaves 0 out."""

ROUNDING = 1e-9
"""A mean difference that is no larger is none, whatever its sign is worth to a test."""

ONE_SPLIT = "undefined: one split"
NO_PAIR = "undefined: no example has the value in both settings"
SAME = "not distinguishable"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One setting beside the reference, by one value on one task.

    Attributes:
        task: Its name; empty where it is not recorded.
        value: By which they are compared.
        reference: The reference's name.
        setting: The other's name.
        means: The reference's and the other's: over splits, of the mean over a split's pairs.
        difference: The other minus the reference, in the value's unit; None where no example has the value in
            both.
        p_splits: Of the test over splits, which speaks about new draws of training examples.
        p_holm: The difference's p-value, corrected for all settings that are compared by this value on this
            task.
        effect: Cohen's d_z over splits.
        needed: The number of splits at which a difference of the size asked for would be seen.
        higher: In how many pairs the other's value is the higher one.
        lower: In how many it is the lower one.
        left_out: Pairs without a value in both.
        verdict: ``better``, ``worse``, ``higher``, ``lower``, ``not distinguishable`` or ``undefined: ...``.
    """

    task: str
    value: ComparedValue
    reference: str
    setting: str
    means: tuple[float, float] | None
    difference: PairedDifference | None
    p_splits: Number
    p_holm: float | None
    effect: Number
    needed: Number
    higher: int
    lower: int
    left_out: int
    verdict: str


def compare(
    reference: Setting, others: Sequence[Setting], values: Sequence[ComparedValue], *, see: float = 1.0
) -> list[Comparison]:
    """Compare settings with a reference.

    Args:
        reference: What the others are compared with.
        others: At least one, on the same splits of each task that they share with the reference.
        values: By which they are compared; where a pair of settings does not have one on a task, it is left
            out.
        see: The difference, in percentage points, for `Comparison.needed`.

    Returns:
        Task by task, value by value, setting by setting.

    Raises:
        CarefError: If splits or examples differ, or a value was not computed in the same way; or there is
            nothing to compare.
    """
    found: list[Comparison] = []
    for task, splits in reference.tasks.items():
        for value in values:
            family = [
                _compared(task, value, (reference, splits), (other, other.tasks[task]), see)
                for other in others
                if task in other.tasks
                and have(splits, value.reference_column)
                and have(other.tasks[task], value.column)
            ]
            found += _corrected(family)
    if not found:
        raise CarefError(
            f"nothing of {reference.name} can be compared: no other setting shares task and value"
        )
    return found


def chosen_values(settings: Sequence[Setting], names: Sequence[str] | None = None) -> list[ComparedValue]:
    """The values of these names, or accuracy, nBERT and calibration as far as two settings have them.

    Raises:
        DataError: If no setting has one that was asked for.
    """
    there = [split.columns for setting in settings for split in setting.splits]
    known = dict.fromkeys(column for columns in there for column in columns)
    asked = [value_named(name) for name in (DEFAULTS if names is None else names)]
    for value in asked:
        if names is not None and value.column not in known:
            told = ", ".join(known) or "none"
            raise DataError(f"no setting has a value {value.column!r} per example; there are: {told}")
    expanded = {each.name: each for value in asked for each in with_temperature(value)}
    return [each for each in expanded.values() if {each.column, each.reference_column} <= set(known)]


def verdict(
    difference: PairedDifference, p_holm: float, p_splits: float | None, *, higher_is_better: bool | None
) -> str:
    """What may be said of a difference.

    The p over splits is asked too, where splits are enough for one: examples alone call what one draw of
    training examples has done a difference of the settings.

    Args:
        difference: In the value's unit.
        p_holm: Over examples, corrected where several settings are compared.
        p_splits: Over splits; None where there are too few for one.
        higher_is_better: None where neither way is better.

    Returns:
        ``better``, ``worse`` or ``not distinguishable``; ``higher`` or ``lower`` where neither is better.

    Example:
        >>> found = PairedDifference(1.0, 0.5, 1.5, 0.001, 10, 900, 0)
        >>> verdict(found, 0.003, 0.01, higher_is_better=False)
        'worse'
        >>> verdict(found, 0.06, 0.01, higher_is_better=True)
        'not distinguishable'
        >>> verdict(found, 0.003, 0.06, higher_is_better=True)
        'not distinguishable'
    """
    if difference.low <= 0 <= difference.high or max(p_holm, p_splits or 0.0) >= ALPHA:
        return SAME
    if abs(difference.mean) <= ROUNDING:
        return SAME
    if higher_is_better is None:
        return "higher" if difference.mean > 0 else "lower"
    return "better" if (difference.mean > 0) == higher_is_better else "worse"


def _any_defined(splits: Splits, column: str) -> bool:
    return any(row[column] is not None for split in splits.values() for row in split.scores.values())


def _compared(
    task: str, value: ComparedValue, first: tuple[Setting, Splits], second: tuple[Setting, Splits], see: float
) -> Comparison:
    (reference, before), (setting, after) = first, second
    # How a value was computed does not matter where there is none.
    if not (_any_defined(before, value.reference_column) and _any_defined(after, value.column)):
        left_out = sum(len(split.scores) for split in before.values())
        return _nothing(task, value, reference.name, setting.name, left_out)
    try:
        pairs = pair(*columns_of(before, after, value.reference_column, value.column))
    except DataError:
        raise
    except CarefError as error:
        raise CarefError(f"{reference.name} and {setting.name}: {error}") from error
    if not pairs.ids:
        return _nothing(task, value, reference.name, setting.name, pairs.left_out)
    by_split = pairs.split_differences * value.scale
    higher, lower = pairs.higher_and_lower
    return Comparison(
        task=task,
        value=value,
        reference=reference.name,
        setting=setting.name,
        means=(pairs.means[0] * value.scale, pairs.means[1] * value.scale),
        difference=difference_of(pairs).scaled(value.scale),
        p_splits=split_test(by_split),
        p_holm=None,
        effect=effect_size(by_split),
        needed=splits_needed(value.seen(see), deviation(by_split)),
        higher=higher,
        lower=lower,
        left_out=pairs.left_out,
        verdict="",
    )


def _nothing(task: str, value: ComparedValue, reference: str, setting: str, left_out: int) -> Comparison:
    """A comparison by a value that no example has in both settings."""
    reason = Number(None, NO_PAIR.removeprefix("undefined: "))
    return Comparison(
        task=task,
        value=value,
        reference=reference,
        setting=setting,
        means=None,
        difference=None,
        p_splits=reason,
        p_holm=None,
        effect=reason,
        needed=reason,
        higher=0,
        lower=0,
        left_out=left_out,
        verdict=NO_PAIR,
    )


def _corrected(family: Sequence[Comparison]) -> Iterator[Comparison]:
    """The same with Holm's correction over all of them, and what may then be said."""
    adjusted = holm([each.difference.p_value if each.difference else None for each in family])
    for each, p in zip(family, adjusted, strict=True):
        if each.difference is None or p is None:
            yield each
        else:
            told = verdict(
                each.difference, p, each.p_splits.value, higher_is_better=each.value.higher_is_better
            )
            yield replace(each, p_holm=p, verdict=ONE_SPLIT if each.difference.splits == 1 else told)
