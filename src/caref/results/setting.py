"""A setting as it is compared: what it scored, example by example, on the splits of its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from caref.errors import CarefError, DataError
from caref.results.result import MetricRecord, RunResult
from caref.results.run_directory import RunDirectory
from caref.results.scores import Score
from caref.statistics.paired import check_same_splits

METRIC_OF = {
    "correct": "accuracy",
    "bertscore_f1": "nbert",
    "candidate_confidence": "calibration_error",
    "candidate_correct": "calibration_error",
}
"""Whose a per-example value is in runs that were written before their metrics listed their columns."""


@dataclass(frozen=True)
class ScoredSplit:
    """One split of one task with the values that a setting has on its examples.

    Attributes:
        path: Where it was read.
        task: Its name; empty where it is not recorded.
        checksum: Of the split; None where it is not recorded: then the examples' ids have to be the same.
        scores: The example's id to names to values.
        metrics: What computed the values.
    """

    path: Path
    task: str
    checksum: str | None
    scores: Mapping[str, Mapping[str, Score]]
    metrics: Mapping[str, MetricRecord]

    @classmethod
    def of_run(cls, run: RunDirectory, result: RunResult) -> ScoredSplit:
        """What a complete run scored.

        Raises:
            DataError: If that cannot be read.
        """
        return cls(run.path, result.task, result.split_checksum, run.read_scores(), result.metrics)

    @cached_property
    def columns(self) -> list[str]:
        """The names of the values that every example has."""
        rows = iter(self.scores.values())
        first = next(rows, {})
        shared = set(first).intersection(*rows)
        return [name for name in first if name in shared]

    def column(self, name: str) -> dict[str, Score]:
        """One value of every example.

        Raises:
            DataError: If an example does not have it.
        """
        for row in self.scores.values():
            if name not in row:
                there = ", ".join(row) or "none"
                raise DataError(f"{self.path / 'scores.jsonl'} has no value {name!r}; there are: {there}")
        return {example: row[name] for example, row in self.scores.items()}

    def owners(self, name: str) -> list[str]:
        """The metrics that a per-example value may be of: all, where that cannot be told."""
        listed = [metric for metric, record in self.metrics.items() if name in record.columns]
        known = [
            metric
            for metric, record in self.metrics.items()
            if metric == METRIC_OF.get(name) or name in record.values
        ]
        return listed or known or list(self.metrics)


Splits = Mapping[Any, ScoredSplit]
"""The seed or the name of a split to what was scored on it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting on its tasks.

    Attributes:
        name: What it is called in a comparison.
        tasks: Task to its splits.
    """

    name: str
    tasks: Mapping[str, Splits]

    @property
    def splits(self) -> Iterator[ScoredSplit]:
        """All of them."""
        return (split for splits in self.tasks.values() for split in splits.values())


def have(splits: Splits, *columns: str) -> bool:
    """Whether every example of every split has these values, defined or not."""
    return all(set(columns) <= set(split.columns) for split in splits.values())


def columns_of(
    first: Splits, second: Splits, name: str, second_name: str | None = None
) -> tuple[dict[Any, dict[str, Score]], dict[Any, dict[str, Score]]]:
    """A per-example value of two settings on the splits of a task, ready to be paired.

    Args:
        first: The splits of one setting.
        second: The same splits of the other.
        name: The value, by its name in ``scores.jsonl``.
        second_name: The second setting's value, where it is another one.

    Returns:
        For either setting: the split to the example's id to the value.

    Raises:
        CarefError: If the splits are not the same, or the value was not computed in the same way.
        DataError: If an example has no such value.
    """
    check_same_splits(first, second)
    names = (name, second_name or name)
    for key, split in first.items():
        _check_same_split(split, second[key])
        for each in dict.fromkeys(names):
            _check_same_measure(split, second[key], each)
    before, after = (
        {key: split.column(of) for key, split in side.items()}
        for side, of in zip((first, second), names, strict=True)
    )
    return before, after


def _check_same_split(first: ScoredSplit, second: ScoredSplit) -> None:
    checksums = first.checksum, second.checksum
    for what, differ in (
        ("tasks", first.task != second.task),
        ("splits", None not in checksums and checksums[0] != checksums[1]),
    ):
        if differ:
            raise CarefError(
                f"{first.path} and {second.path} were run on different {what}; "
                "compare runs of the same task, data, shots and evaluation size"
            )


def _check_same_measure(first: ScoredSplit, second: ScoredSplit, value: str) -> None:
    for name in first.owners(value):
        if name not in second.metrics:
            continue
        fingerprints = first.metrics[name].fingerprint, second.metrics[name].fingerprint
        for key in sorted(fingerprints[0].keys() | fingerprints[1].keys()):
            before, after = (fingerprint.get(key) for fingerprint in fingerprints)
            if before != after:
                raise CarefError(
                    f"{name} was not computed in the same way: {key} is {before!r} in {first.path} "
                    f"and {after!r} in {second.path}"
                )
