"""What runs say together, as plain data: every number and text that a report shows."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from caref.errors import CarefError
from caref.generation.prediction import Prediction
from caref.results.files import write_json
from caref.results.paired import compare_runs
from caref.results.result import RunResult
from caref.results.run_directory import RunDirectory
from caref.results.table import COLUMNS
from caref.statistics.paired import PairedDifference

VALUES = (*COLUMNS, "calibration_error_95")
"""The values of a run that are summarised, where it has them."""

ALPHA = 0.05
"""A difference is called one where its p-value is below this and its 95 % interval leaves 0 out."""

BINS = 15
SHOWN_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Paired:
    """A per-example value that two settings are compared by.

    Attributes:
        value: Its name in ``scores.jsonl``.
        name: In words.
        unit: Of the difference.
        scale: Turns the value into that unit.
        higher_is_better: Which way is better.
    """

    value: str
    name: str
    unit: str = "points"
    scale: float = 1.0
    higher_is_better: bool = True


PAIRED = (
    Paired("correct", "accuracy", scale=100),
    Paired("nbert", "nBERT"),
    Paired("candidate_correct", "likeliest candidate right", scale=100),
    Paired("brier", "Brier score", unit="", higher_is_better=False),
)
"""Accuracy and nBERT are of what was written; the other two of the candidates' probabilities."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value over splits: one number a split, in their order, None where it is undefined."""

    per_split: list[float | None]

    @property
    def mean(self) -> float | None:
        """Over the splits where it is defined."""
        known = self._known
        return statistics.fmean(known) if known else None

    @property
    def std(self) -> float | None:
        """The sample standard deviation; None of fewer than two."""
        known = self._known
        return statistics.stdev(known) if len(known) > 1 else None

    @property
    def _known(self) -> list[float]:
        return [value for value in self.per_split if value is not None]


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


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions whose likeliest candidate has a probability in the same of `BINS` equal parts of [0, 1].

    Attributes:
        place: Which part, from 0.
        count: How many predictions.
        confidence: The mean of those probabilities.
        right: The share of those candidates that are right.
    """

    place: int
    count: int
    confidence: float
    right: float


@dataclass(frozen=True, slots=True)
class Said:
    """What one setting said to an example."""

    text: str
    right: bool
    broken: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """An example side by side: what was asked, what is right, what each setting said."""

    input: str
    answer: str
    explanation: str
    said: dict[str, Said]


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """All settings on one task.

    Attributes:
        task: Its name.
        seeds: Of the splits, in order.
        shots: Training examples of a split.
        evaluated: Evaluated examples of a split.
        chance: The accuracy in percent of guessing among the candidates; None where they are not known.
        values: Setting to name to value.
        differences: Of the two settings that are compared.
        reliability: Setting to the bins that hold something, over the splits together.
        examples: The first of the first split, in the order of its draw.
    """

    task: str
    seeds: list[int]
    shots: int
    evaluated: int
    chance: float | None
    values: dict[str, dict[str, Value]]
    differences: list[Difference]
    reliability: dict[str, list[Bin]]
    examples: list[Shown]


@dataclass(frozen=True, slots=True)
class Summary:
    """Several settings on the same splits of some tasks.

    Attributes:
        settings: Their names, in order.
        compared: The two of them that are compared: the second minus the first.
        tasks: In the order in which they were given.
        environment: What it took and on what: what differs between runs is listed.
    """

    settings: list[str]
    compared: tuple[str, str]
    tasks: list[TaskSummary]
    environment: dict[str, Any]

    @property
    def value_names(self) -> list[str]:
        """Those of `VALUES` that any setting has on any task."""
        has = {name for task in self.tasks for values in task.values.values() for name in values}
        return [name for name in VALUES if name in has]

    def as_json(self) -> dict[str, Any]:
        """The same as JSON has it, with means and standard deviations written out."""
        record = asdict(self)
        for task, plain in zip(self.tasks, record["tasks"], strict=True):
            for setting, values in task.values.items():
                for name, value in values.items():
                    written = {"mean": value.mean, "std": value.std, "per_split": value.per_split}
                    plain["values"][setting][name] = written
        return record

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        write_json(path, self.as_json())


def summarise(
    runs: Mapping[str, Sequence[RunDirectory]],
    *,
    compared: tuple[str, str],
    examples: int = SHOWN_EXAMPLES,
) -> Summary:
    """Read complete runs and put them beside each other.

    Args:
        runs: The name of a setting to its runs, on every task and split the same for all settings.
        compared: Two of the names; the differences are the second minus the first.
        examples: How many to show of each task.

    Raises:
        CarefError: If a setting lacks a split that another has, or two runs cannot be compared.
        DataError: If a run is not complete or cannot be read.
    """
    read = {name: _by_task(directories) for name, directories in runs.items()}
    first, *others = read
    for other in others:
        splits = [{task: list(by_seed) for task, by_seed in read[name].items()} for name in (first, other)]
        if splits[0] != splits[1]:
            raise CarefError(f"{first} and {other} were not run on the same tasks and splits")
    return Summary(
        settings=list(read),
        compared=compared,
        tasks=[
            _task({name: read[name][task] for name in read}, task, compared, examples) for task in read[first]
        ],
        environment=_environment([directory for directories in runs.values() for directory in directories]),
    )


@dataclass(frozen=True, slots=True)
class _Run:
    directory: RunDirectory
    result: RunResult


def _by_task(directories: Sequence[RunDirectory]) -> dict[str, dict[int, _Run]]:
    tasks: dict[str, dict[int, _Run]] = {}
    for directory in directories:
        result = directory.read_result()
        by_seed = tasks.setdefault(result.task, {})
        if result.seed in by_seed:
            other = by_seed[result.seed].directory.path
            raise CarefError(f"{other} and {directory.path} are the same split of one setting")
        by_seed[result.seed] = _Run(directory, result)
    return tasks


def _task(
    settings: Mapping[str, Mapping[int, _Run]], task: str, compared: tuple[str, str], examples: int
) -> TaskSummary:
    predictions = {
        name: [run.directory.read_predictions() for run in by_seed.values()]
        for name, by_seed in settings.items()
    }
    some = next(iter(settings.values()))
    result = next(iter(some.values())).result
    first, second = ([run.directory for run in settings[name].values()] for name in compared)
    return TaskSummary(
        task=task,
        seeds=list(some),
        shots=result.train_examples,
        evaluated=result.evaluated_examples,
        chance=_chance(next(iter(predictions.values()))[0]),
        values={name: _values([run.result for run in settings[name].values()]) for name in settings},
        differences=[
            _difference(first, second, paired) for paired in PAIRED if _have(first + second, paired.value)
        ],
        reliability={
            name: _reliability([run.directory for run in settings[name].values()]) for name in compared
        },
        examples=_examples({name: splits[0] for name, splits in predictions.items()}, examples),
    )


def _values(results: Sequence[RunResult]) -> dict[str, Value]:
    known = {name for result in results for name in result.value_names}
    return {
        name: Value([result.value(name) if name in result.value_names else None for result in results])
        for name in VALUES
        if name in known
    }


def _chance(predictions: Sequence[Prediction]) -> float | None:
    shares = [100 / len(each.label_probabilities) for each in predictions if each.label_probabilities]
    return statistics.fmean(shares) if shares else None


def _have(runs: Sequence[RunDirectory], value: str) -> bool:
    return all(value in next(iter(run.read_scores().values()), {}) for run in runs)


def _difference(first: Sequence[RunDirectory], second: Sequence[RunDirectory], paired: Paired) -> Difference:
    plain = compare_runs(first, second, paired.value)
    of = PairedDifference(
        mean=plain.mean * paired.scale,
        low=plain.low * paired.scale,
        high=plain.high * paired.scale,
        p_value=plain.p_value,
        splits=plain.splits,
        pairs=plain.pairs,
        left_out=plain.left_out,
    )
    return Difference(paired, of, verdict(of, higher_is_better=paired.higher_is_better))


def verdict(difference: PairedDifference, *, higher_is_better: bool) -> str:
    """What may be said of a difference: ``better``, ``worse`` or ``not distinguishable``."""
    if difference.low <= 0 <= difference.high or difference.p_value >= ALPHA:
        return "not distinguishable"
    return "better" if (difference.mean > 0) == higher_is_better else "worse"


def _reliability(runs: Sequence[RunDirectory]) -> list[Bin]:
    pairs = [
        (confidence, row["candidate_correct"])
        for run in runs
        for row in run.read_scores().values()
        if (confidence := row.get("candidate_confidence")) is not None
    ]
    if not pairs:
        return []
    confidences, right = np.array(pairs, dtype=np.float64).T
    # As the calibration error bins them: a bin holds its lower edge.
    places = np.searchsorted(np.arange(1, BINS) / BINS, confidences, side="right")
    return [
        Bin(place, int(inside.sum()), float(confidences[inside].mean()), float(right[inside].mean()))
        for place in range(BINS)
        if (inside := places == place).any()
    ]


def _examples(predictions: Mapping[str, Sequence[Prediction]], count: int) -> list[Shown]:
    some = next(iter(predictions.values()))
    return [
        Shown(
            input=some[row].input,
            answer=some[row].gold_label,
            explanation=some[row].gold_explanations[0],
            said={
                name: Said(" ".join(said[row].text.split()), said[row].correct, said[row].broken)
                for name, said in predictions.items()
            },
        )
        for row in range(min(count, len(some)))
    ]


def _environment(runs: Sequence[RunDirectory]) -> dict[str, Any]:
    each = [run.read_environment() for run in runs]
    results = [run.read_result() for run in runs]

    def listed(values: Sequence[object]) -> str:
        return ", ".join(sorted({str(value) for value in values if value is not None}))

    encoders = [
        result.metrics["nbert"].fingerprint.get("encoder") for result in results if "nbert" in result.metrics
    ]
    return {
        "runs": len(runs),
        "seconds": round(sum(sum(one["seconds"].values()) for one in each), 1),
        "peak_mib": max(max(one["peak_mib"].values()) for one in each),
        "threads": listed([one["threads"] for one in each]),
        "caref": listed([one["caref"] for one in each]),
        "commit": listed([one["commit"] for one in each]),
        "python": listed([one["python"] for one in each]),
        "platform": listed([one["platform"] for one in each]),
        "device": listed([one["device"] for one in each]),
        "packages": {
            name: listed([one["packages"].get(name) for one in each]) for name in each[0]["packages"]
        },
        "model": listed([result.model for result in results]),
        "method": listed([result.method for result in results]),
        "encoder": listed(encoders),
        "trainable_parameters": max(result.trainable_parameters for result in results),
        "total_parameters": max(result.total_parameters for result in results),
    }
