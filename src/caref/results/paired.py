"""Two settings that were run on the same splits, compared example by example."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caref.errors import CarefError, DataError
from caref.results.result import RunResult
from caref.results.run_directory import RunDirectory

Scores = Mapping[int, Mapping[str, float | None]]
"""The seed of a split to the ids of its examples to their values, None where undefined."""

DRAWS = 2_000
"""Bootstrap draws behind the interval."""

FLIPS = 10_000
"""Random sign flips behind the p-value."""

SEED = 0

METRIC_OF = {
    "correct": "accuracy",
    "bertscore_f1": "nbert",
    "candidate_confidence": "calibration_error",
    "candidate_correct": "calibration_error",
}
"""Whose a per-example value is that none of its metric's values is named after."""


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
      independent. Splits are not flipped: three of them could not give less than p = 0.25.

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
    _check_same("splits", "seed", first, second)
    if not first:
        raise CarefError("there is no split to compare; pass at least one run of each setting")
    differences: dict[int, dict[str, float]] = {}
    left_out = 0
    for seed in sorted(first):
        _check_same(f"examples of seed {seed}", "id", first[seed], second[seed])
        differences[seed] = {}
        for example in sorted(first[seed]):
            before, after = first[seed][example], second[seed][example]
            if before is None or after is None:
                left_out += 1
                continue
            if not math.isfinite(after - before):
                raise CarefError(
                    f"seed {seed}, id {example!r}: {before} and {after} have no finite difference"
                )
            differences[seed][example] = after - before
    splits = [split for split in differences.values() if split]
    if not splits:
        raise CarefError("no example has a value in both settings; there is nothing to compare")
    low, high = _interval([np.array(list(split.values())) for split in splits])
    return PairedDifference(
        mean=math.fsum(math.fsum(split.values()) / len(split) for split in splits) / len(splits),
        low=low,
        high=high,
        p_value=_p_value(splits),
        splits=len(splits),
        pairs=sum(map(len, splits)),
        left_out=left_out,
    )


def compare_runs(
    first: Sequence[RunDirectory], second: Sequence[RunDirectory], value: str
) -> PairedDifference:
    """Compare the runs of two settings by a per-example value.

    Args:
        first: Complete runs of one setting, one per seed.
        second: Those of the other, with the same seeds on the same splits.
        value: A name in ``scores.jsonl``: ``correct`` (accuracy as 0 or 1), ``nbert``, ``brier`` ...

    Raises:
        DataError: If a run is not complete or cannot be read, or has no such value.
        CarefError: If the runs were not evaluated on the same splits, or the value was not
            computed in the same way; or as in `paired_difference`.
    """
    sides = [_by_seed(first, "first"), _by_seed(second, "second")]
    _check_same("splits", "seed", *sides)
    for seed, (run, result) in sides[0].items():
        _check_same_split((run, result), sides[1][seed])
        _check_same_measure((run, result), sides[1][seed], value)
    return paired_difference(
        *({seed: _column(run, value) for seed, (run, _) in side.items()} for side in sides)
    )


_Run = tuple[RunDirectory, RunResult]


def _by_seed(runs: Sequence[RunDirectory], which: str) -> dict[int, _Run]:
    found: dict[int, _Run] = {}
    for run in runs:
        result = run.read_result()
        if result.seed in found:
            raise CarefError(
                f"two of the {which} runs have seed {result.seed}: {found[result.seed][0].path} and "
                f"{run.path}; pass the runs of one setting"
            )
        found[result.seed] = run, result
    return found


def _check_same_split(first: _Run, second: _Run) -> None:
    for name in ("task", "split_checksum"):
        if getattr(first[1], name) != getattr(second[1], name):
            what = "tasks" if name == "task" else "splits"
            raise CarefError(
                f"{first[0].path} and {second[0].path} were run on different {what}; "
                "compare runs of the same task, data, shots and evaluation size"
            )


def _check_same_measure(first: _Run, second: _Run, value: str) -> None:
    measured = first[1].metrics
    own = [name for name in measured if name == METRIC_OF.get(value) or value in measured[name].values]
    # Whose a value of another package is cannot be told from a run: then all metrics have to agree.
    for name in own or measured:
        if name not in second[1].metrics:
            continue
        fingerprints = measured[name].fingerprint, second[1].metrics[name].fingerprint
        for key in sorted(fingerprints[0].keys() | fingerprints[1].keys()):
            before, after = (fingerprint.get(key) for fingerprint in fingerprints)
            if before != after:
                raise CarefError(
                    f"{name} was not computed in the same way: {key} is {before!r} in {first[0].path} "
                    f"and {after!r} in {second[0].path}"
                )


def _column(run: RunDirectory, value: str) -> dict[str, float | None]:
    scores = run.read_scores()
    for row in scores.values():
        if value not in row:
            raise DataError(
                f"{run.scores_path} has no value {value!r}; there are: {', '.join(row) or 'none'}"
            )
    return {example: row[value] for example, row in scores.items()}


def _check_same(what: str, kind: str, first: Mapping[Any, Any], second: Mapping[Any, Any]) -> None:
    told = [
        f"{len(only)} in the {side} alone ({kind} {', '.join(map(repr, sorted(only)[:3]))}"
        f"{' ...' if len(only) > 3 else ''})"
        for side, only in (("first", first.keys() - second.keys()), ("second", second.keys() - first.keys()))
        if only
    ]
    if told:
        raise CarefError(f"the {what} differ: {' and '.join(told)}; compare the same ones")


def _interval(splits: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    generator = np.random.default_rng(SEED)
    means = np.empty(DRAWS)
    for draw in range(DRAWS):
        drawn = [splits[place] for place in generator.integers(len(splits), size=len(splits))]
        means[draw] = np.mean(
            [split[generator.integers(split.size, size=split.size)].mean() for split in drawn]
        )
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _p_value(splits: Sequence[Mapping[str, float]]) -> float:
    parts: dict[str, list[float]] = defaultdict(list)
    for split in splits:
        for example, difference in split.items():
            parts[example].append(difference / len(split))
    # One number per example: what it adds to the mean over all splits, times their number.
    shares = np.array([math.fsum(parts[example]) for example in sorted(parts)])
    generator = np.random.default_rng(SEED)
    # Equal sums may differ in their last digits; these must count as equal.
    observed = abs(shares.sum()) - 1e-9 * np.abs(shares).sum()
    extreme = sum(
        abs(shares @ (1 - 2 * generator.integers(2, size=shares.size))) >= observed for _ in range(FLIPS)
    )
    return float((extreme + 1) / (FLIPS + 1))
