"""What runs say together, as plain data: every number and text that a report shows."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from caref.errors import CarefError
from caref.generation.prediction import Prediction
from caref.metrics.calibration.binned import Bin, reliability_bins
from caref.reports.differences import Difference, differences
from caref.results.factors import DecomposedDifference, decomposed
from caref.results.files import write_json
from caref.results.result import RunResult
from caref.results.run_directory import RunDirectory
from caref.results.setting import ScoredSplit, Setting, Splits

VALUES = (
    *("accuracy", "f1_given_right", "nbert", "broken", "candidate_accuracy", "nll"),
    *("calibration_error", "calibration_error_95"),
)
"""The values of a run that are summarised, where it has them: in the order of a table's columns."""

SHOWN_EXAMPLES = 3


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
        nbert_parts: Their difference in nBERT as its parts; None where it was not computed.
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
    nbert_parts: DecomposedDifference | None
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
    first, second = (_splits(settings[name].values()) for name in compared)
    parts = decomposed(Setting(compared[0], {task: first}), [Setting(compared[1], {task: second})])
    return TaskSummary(
        task=task,
        seeds=list(some),
        shots=result.train_examples,
        evaluated=result.evaluated_examples,
        chance=_chance(next(iter(predictions.values()))[0]),
        values={name: _values([run.result for run in settings[name].values()]) for name in settings},
        differences=differences(first, second, compared[0]),
        nbert_parts=parts[0] if parts else None,
        reliability={
            name: _reliability(splits) for name, splits in zip(compared, (first, second), strict=True)
        },
        examples=_examples({name: splits[0] for name, splits in predictions.items()}, examples),
    )


def _splits(runs: Iterable[_Run]) -> dict[int, ScoredSplit]:
    return {run.result.seed: ScoredSplit.of_run(run.directory, run.result) for run in runs}


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


def _reliability(splits: Splits) -> list[Bin]:
    pairs = [
        (confidence, row["candidate_correct"])
        for split in splits.values()
        for row in split.scores.values()
        if (confidence := row.get("candidate_confidence")) is not None
    ]
    # Of no pair there are no bins.
    return reliability_bins(*zip(*pairs, strict=True)) if pairs else []


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
