"""Evaluating predictions that are there already, a run's or any other system's: no language model needed."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from caref.errors import CarefError, DataError
from caref.experiments.spec import read_run_spec, resolved_metric_settings
from caref.generation.prediction import Prediction
from caref.metrics import METRICS, Metric, MetricResult, evaluate
from caref.metrics.bertscore import ScoreCache
from caref.metrics.result import ScoresTogether, undefined
from caref.results.evaluation import Evaluation, EvaluationFolder
from caref.results.prediction_file import read_checked_predictions
from caref.results.result import MetricRecord, RunResult
from caref.results.run_directory import RunDirectory, complete_runs
from caref.settings import declared_settings

MADE_UP = Prediction(
    id="1",
    input="Is milk white?",
    text="yes because it is",
    label="yes",
    explanation="it is",
    broken=False,
    confidence=0.5,
    confidence_source="candidates",
    label_probabilities={"yes": 0.5, "no": 0.5},
    label_log_probs_sum={"yes": -1.0, "no": -1.0},
    label_log_probs_mean={"yes": -0.5, "no": -0.5},
    answer_mass=0.7,
    gold_label="yes",
    gold_explanations=("milk is white",),
)
"""A prediction that every metric can be computed of: whether its encoder can be had shows before any work."""


@dataclass(frozen=True, slots=True)
class PredictionSet:
    """Predictions that are evaluated together.

    Attributes:
        name: What they are called: a run's folder, or a file's name without its ending.
        predictions: In their order.
        run: What the run says of itself, where a run made them.
        setting: The same for all splits of one setting; without a run its name.
    """

    name: str
    predictions: Sequence[Prediction]
    run: RunResult | None = None
    setting: str = ""

    @property
    def sha256(self) -> str:
        """Of the predictions, in their order: the same wherever they lie."""
        digest = hashlib.sha256()
        for prediction in self.predictions:
            digest.update(prediction.model_dump_json().encode() + b"\n")
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One set with its metrics.

    Attributes:
        of: The set.
        evaluation: The metrics.
        columns: Per-example values: name to one value per prediction.
    """

    of: PredictionSet
    evaluation: Evaluation
    columns: Mapping[str, Sequence[float | None]]

    def write(self, folder: Path) -> None:
        """Write a folder of the set's name into `folder`."""
        ids = [prediction.id for prediction in self.of.predictions]
        EvaluationFolder(folder / self.of.name).write(self.evaluation, ids, self.columns)


def find_prediction_sets(paths: Sequence[Path]) -> list[PredictionSet]:
    """Read predictions.

    Args:
        paths: Files of predictions, runs, or folders of either. In a folder with runs only these are read.

    Returns:
        A set for each file and each run, in the order of the paths, with names of their own.

    Raises:
        DataError: If there is nothing at a path, or on the first line that is no prediction.
    """
    sets = [found for path in paths for found in _sets_at(path)]
    names = [each.name for each in sets]
    for name in names:
        if names.count(name) > 1:
            raise DataError(
                f"two sets of predictions are called {name!r}; rename one, or evaluate them apart"
            )
    return sets


def _sets_at(path: Path) -> Iterator[PredictionSet]:
    if path.is_file():
        run = RunDirectory(path.parent)
        yield _of_run(run) if run.is_complete and path == run.predictions_path else _of_file(path)
        return
    if not path.is_dir():
        raise DataError(f"there is no file or folder {path}")
    runs = list(complete_runs(path))
    files = [] if runs else sorted(path.glob("*.jsonl"))
    if not runs and not files:
        raise DataError(f"{path} holds neither a complete run nor files of predictions (*.jsonl)")
    yield from map(_of_run, runs)
    yield from map(_of_file, files)


def _of_run(run: RunDirectory) -> PredictionSet:
    return PredictionSet(
        run.path.resolve().name,
        run.read_predictions(),
        run=run.read_result(),
        setting=read_run_spec(run).setting_id,
    )


def _of_file(path: Path) -> PredictionSet:
    return PredictionSet(path.stem, read_checked_predictions(path), setting=path.stem)


def pooled(sets: Sequence[PredictionSet]) -> list[PredictionSet]:
    """All splits of a setting as one set; files of predictions, which name no setting, all together.

    An example that is in several splits keeps its id, by which intervals draw it as one.
    """
    groups: dict[tuple[str, str], list[PredictionSet]] = {}
    for each in sets:
        groups.setdefault((each.run.task, each.setting) if each.run else ("", ""), []).append(each)
    return [
        PredictionSet(
            name=f"{_setting_name(group[0])} ({len(group)} {'splits' if group[0].run else 'files'})",
            predictions=[prediction for each in group for prediction in each.predictions],
        )
        for group in groups.values()
    ]


def _setting_name(of: PredictionSet) -> str:
    run = of.run
    return "pooled" if run is None else "_".join([run.task, run.model, run.method, run.objective, of.setting])


@dataclass(frozen=True, slots=True)
class Evaluator:
    """The metrics with their settings, shared by all sets.

    Attributes:
        metrics: To be computed.
        left_out: Metrics that cannot be computed here, by name, and why; their value is undefined with that
            reason.
    """

    metrics: Sequence[Metric]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def make(
        cls,
        names: Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        *,
        cache: ScoreCache | None = None,
    ) -> Evaluator:
        """The metrics of these names, or all there are.

        A metric whose encoder cannot be had is left out if neither it nor the encoder was asked for.

        Args:
            names: In `METRICS`.
            settings: Of the metrics, by their plain names.
            cache: Where a metric may keep on disk what takes long.

        Raises:
            CarefError: If a name is unknown, a setting fits none of them, or what was asked for is not there.
        """
        chosen = tuple(dict.fromkeys(METRICS.names() if names is None else names))
        given = dict(settings or {})
        resolved = resolved_metric_settings(chosen, given)
        metrics, left_out = [], {}
        for name in chosen:
            entry = METRICS.get(name)
            own = declared_settings(entry)
            wiring = {"cache": cache} if "cache" in inspect.signature(entry).parameters else {}
            metric = entry(**{key: resolved[key] for key in own}, **wiring)
            try:
                metric.compute([MADE_UP])
            except CarefError as error:
                if names is not None or "encoder" not in own or "encoder" in given:
                    raise
                left_out[name] = f"{error}"
            else:
                metrics.append(metric)
        return cls(metrics, left_out)

    def prepare(
        self, sets: Sequence[PredictionSet], *, on_progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Do once what the sets have in common, such as embedding every distinct text.

        `evaluate` gives the same without it, slower where there are several sets.

        Args:
            sets: The predictions that will be evaluated.
            on_progress: Told how much of this work is done, of how much.
        """
        for metric in self.metrics:
            if isinstance(metric, ScoresTogether):
                metric.prepare([each.predictions for each in sets], on_progress=on_progress)

    def evaluate(self, sets: Sequence[PredictionSet]) -> Iterator[Evaluated]:
        """Every set in turn.

        Raises:
            CarefError: If a prediction cannot be evaluated; the set is named.
        """
        return map(self._evaluated, sets)

    def _evaluated(self, of: PredictionSet) -> Evaluated:
        try:
            results = evaluate(of.predictions, self.metrics)
        except CarefError as error:
            raise CarefError(f"{of.name}: {error}") from error
        results |= {name: undefined(reason, name) for name, reason in self.left_out.items()}
        return Evaluated(
            of,
            Evaluation(
                name=of.name,
                predictions_sha256=of.sha256,
                n=len(of.predictions),
                run=None if of.run is None else of.run.identity,
                setting="" if of.run is None else of.setting,
                metrics={name: metric_record(result) for name, result in results.items()},
            ),
            {name: column for result in results.values() for name, column in result.per_example.items()},
        )


def metric_record(result: MetricResult) -> MetricRecord:
    """A metric's result as it is written: the per-example values by name alone."""
    return MetricRecord(
        values=dict(result.values),
        notes=dict(result.notes),
        intervals=dict(result.intervals),
        fingerprint=dict(result.fingerprint),
        columns=tuple(result.per_example),
    )


def as_run_results(evaluated: Sequence[Evaluated]) -> list[tuple[RunResult, str]]:
    """What `caref.results.table.aggregate` takes: the runs with these metrics in place of their own."""
    return [
        (each.of.run.model_copy(update={"metrics": each.evaluation.metrics}), each.of.setting)
        for each in evaluated
        if each.of.run is not None
    ]
