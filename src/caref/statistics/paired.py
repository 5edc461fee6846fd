"""Two settings with values for the same examples of the same splits, compared pair by pair."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caref.errors import CarefError
from caref.statistics.bootstrap import percentile_interval
from caref.statistics.nested_bootstrap import resampled_means
from caref.statistics.sign_flip import sampled_p_value

Scores = Mapping[Any, Mapping[str, float | None]]
"""The seed or the name of a split to the ids of its examples to their values, None where undefined."""

DRAWS = 2_000
"""Bootstrap draws behind the interval."""

FLIPS = 10_000
"""Random sign flips behind the p-value."""

SEED = 0

NO_PAIR = "no example has a value in both settings; there is nothing to compare"


@dataclass(frozen=True, slots=True)
class Pairs:
    """What two settings have in common: the examples with a value in both, split by split.

    Attributes:
        ids: For each split with at least one pair the ids of its examples, in order.
        first: For each such split the first setting's values, in the order of `ids`.
        second: Those of the second.
        left_out: Pairs that are not here because either value is undefined.
    """

    ids: tuple[tuple[str, ...], ...]
    first: tuple[NDArray[np.float64], ...]
    second: tuple[NDArray[np.float64], ...]
    left_out: int

    @property
    def differences(self) -> list[NDArray[np.float64]]:
        """The second minus the first, of each pair."""
        return [after - before for before, after in zip(self.first, self.second, strict=True)]

    @property
    def split_differences(self) -> NDArray[np.float64]:
        """The mean difference of each split."""
        return np.array([_mean(split) for split in self.differences])

    @property
    def means(self) -> tuple[float, float]:
        """Of either setting: the mean over splits of the mean over a split's pairs."""
        first, second = (
            math.fsum(map(_mean, side)) / len(side) if side else 0.0 for side in (self.first, self.second)
        )
        return first, second

    @property
    def higher_and_lower(self) -> tuple[int, int]:
        """In how many pairs the second value is the larger one, and in how many the smaller one."""
        signs = np.sign(np.concatenate(self.differences)) if self.first else np.zeros(0)
        return int((signs > 0).sum()), int((signs < 0).sum())


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The second setting minus the first.

    Attributes:
        mean: The mean over splits of the mean over a split's pairs, in the value's own unit.
        low: The lower end of the 95 % interval.
        high: Its upper end.
        p_value: Of the two-sided test that the difference is 0, within (0, 1].
        splits: The number of splits with at least one pair.
        pairs: The number of pairs in all splits together.
        left_out: Pairs that were not counted because either value is undefined.
    """

    mean: float
    low: float
    high: float
    p_value: float
    splits: int
    pairs: int
    left_out: int

    def scaled(self, scale: float) -> PairedDifference:
        """The same in another unit, `scale` of which make one of this; it has to be above 0.

        Example:
            >>> PairedDifference(0.5, 0.25, 0.75, 0.01, 1, 8, 0).scaled(100).mean
            50.0
        """
        return PairedDifference(
            self.mean * scale,
            self.low * scale,
            self.high * scale,
            self.p_value,
            self.splits,
            self.pairs,
            self.left_out,
        )


def paired_difference(first: Scores, second: Scores) -> PairedDifference:
    """Compare two settings, paired by split and by example.

    The interval and the p-value answer different questions:

    - The interval is a percentile bootstrap: 2,000 times, splits are drawn with replacement, then examples
      within each. It speaks about new examples *and* new draws of the training examples, and assumes that
      the splits at hand are a fair sample of splits. Few splits are a poor one: with three it is too
      narrow, with one it knows nothing of other training draws. With many splits it is rather too wide,
      since means of splits already vary by their examples. Examples of different splits count as independent.
    - The p-value is a permutation test: 10,000 times, the sign of each example's differences is drawn anew.
      It speaks about *these trained models* on new examples, not about new training draws, and assumes that
      without a difference each example would favour either setting alike and that examples are independent.
      An example that is in several splits keeps one sign for all of them, for its differences there are not
      independent. Splits are not flipped: `caref.statistics.sign_flip.split_test` does that.

    Both use a fixed seed, and depend neither on the order of splits nor on that of examples.

    Args:
        first: Seed to example id to value.
        second: The same seeds and ids with the other setting's values.

    Raises:
        CarefError: If seeds or ids differ, a value is not finite, or no pair is left.

    Example:
        >>> plain = {1: {"a": 0.0, "b": 0.0, "c": None}, 2: {"a": 0.0, "d": 1.0}}
        >>> better = {1: {"a": 1.0, "b": 0.0, "c": 1.0}, 2: {"a": 1.0, "d": 1.0}}
        >>> result = paired_difference(plain, better)
        >>> result.mean, result.splits, result.pairs, result.left_out
        (0.5, 2, 4, 1)
    """
    return difference_of(pair(first, second))


def pair(first: Scores, second: Scores) -> Pairs:
    """Put the values of two settings beside each other.

    Args:
        first: As in `paired_difference`.
        second: As in `paired_difference`.

    Raises:
        CarefError: If seeds or ids differ, there is no split, or a value is not finite. That no pair is left
            is no error here.

    Example:
        >>> pair({1: {"b": 0.0, "a": 1.0, "c": None}}, {1: {"a": 1.0, "b": 1.0, "c": 1.0}}).ids
        (('a', 'b'),)
    """
    check_same_splits(first, second)
    if not first:
        raise CarefError("there is no split to compare; pass at least one run of each setting")
    splits: list[tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.float64]]] = []
    left_out = 0
    for seed in sorted(first, key=_order):
        check_same(f"examples of {_called(seed)}", "id", first[seed], second[seed])
        kept = []
        for example in sorted(first[seed]):
            before, after = first[seed][example], second[seed][example]
            if before is None or after is None:
                left_out += 1
            elif not math.isfinite(after - before):
                raise CarefError(
                    f"{_called(seed)}, id {example!r}: {before} and {after} have no finite difference"
                )
            else:
                kept.append((example, before, after))
        if kept:
            ids, befores, afters = zip(*kept, strict=True)
            splits.append((ids, np.array(befores, dtype=np.float64), np.array(afters, dtype=np.float64)))
    return Pairs(
        ids=tuple(split[0] for split in splits),
        first=tuple(split[1] for split in splits),
        second=tuple(split[2] for split in splits),
        left_out=left_out,
    )


def difference_of(pairs: Pairs) -> PairedDifference:
    """What `paired_difference` says of these pairs.

    Raises:
        CarefError: If there is none.
    """
    if not pairs.ids:
        raise CarefError(NO_PAIR)
    differences = pairs.differences
    means = resampled_means([split[:, None] for split in differences], draws=DRAWS, seed=SEED)
    low, high = percentile_interval(means[:, 0])
    return PairedDifference(
        mean=math.fsum(map(_mean, differences)) / len(differences),
        low=low,
        high=high,
        p_value=sampled_p_value(_shares(pairs.ids, differences), flips=FLIPS, seed=SEED),
        splits=len(differences),
        pairs=sum(map(len, differences)),
        left_out=pairs.left_out,
    )


def check_same(what: str, kind: str, first: Mapping[Any, Any], second: Mapping[Any, Any]) -> None:
    """Refuse two settings that do not have the same splits, or a split the same examples.

    Args:
        what: What has to be the same, in words.
        kind: What a key is.
        first: A mapping whose keys are compared.
        second: The other one.

    Raises:
        CarefError: If a key is in one of them alone.
    """
    told = [
        f"{len(only)} in the {side} alone ({kind} {', '.join(map(repr, sorted(only, key=_order)[:3]))}"
        f"{' ...' if len(only) > 3 else ''})"
        for side, only in (("first", first.keys() - second.keys()), ("second", second.keys() - first.keys()))
        if only
    ]
    if told:
        raise CarefError(f"the {what} differ: {' and '.join(told)}; compare the same ones")


def check_same_splits(first: Mapping[Any, Any], second: Mapping[Any, Any]) -> None:
    """Refuse two settings that do not have the same splits, which are known by their seeds or by names.

    Raises:
        CarefError: If a split is in one of them alone.
    """
    seeds = all(isinstance(key, int) for key in (*first, *second))
    check_same("splits", "seed" if seeds else "named", first, second)


def _order(key: int | str) -> tuple[bool, int | str]:
    """Numbers before names."""
    return isinstance(key, str), key


def _called(split: int | str) -> str:
    return f"seed {split}" if isinstance(split, int) else f"split {split!r}"


def _shares(ids: tuple[tuple[str, ...], ...], differences: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """One number per example: what it adds to the mean over all splits, times their number."""
    parts: dict[str, list[float]] = defaultdict(list)
    for split, values in zip(ids, differences, strict=True):
        for example, difference in zip(split, values.tolist(), strict=True):
            parts[example].append(difference / len(split))
    return np.array([math.fsum(parts[example]) for example in sorted(parts)])


def _mean(values: NDArray[np.float64]) -> float:
    return math.fsum(values.tolist()) / len(values)
