"""Runs written by hand, so that what is told of them can be checked by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from caref.experiments.evaluating import metric_record
from caref.generation.prediction import Prediction
from caref.metrics import METRICS, evaluate
from caref.reports.summary import Summary, summarise
from caref.results.result import RunResult
from caref.results.run_directory import RunDirectory
from caref.statistics import paired

Answered = tuple[str, float]
"""What a model wrote to a question whose answer is yes, and how likely yes was among yes and no."""

MakeRun = Callable[..., RunDirectory]
MakeSummary = Callable[..., Summary]

ENVIRONMENT = {
    "caref": "0.1.0",
    "commit": None,
    "python": "3.11.2",
    "platform": "Linux",
    "packages": {"torch": "2.13.0", "numpy": "2.0.0"},
    "device": "x86_64",
    "devices": 0,
    "threads": 1,
    "seconds": {"load": 0.5, "training": 2.0},
    "peak_mib": {"load": 100.0, "training": 250.5},
}


def predicted(number: int, answered: Answered) -> Prediction:
    text, yes = answered
    label, because, explanation = text.partition(" because ")
    return Prediction(
        id=str(number),
        input=f"question {number}",
        text=text,
        label=label,
        explanation=explanation if because else "UNK",
        broken=not because,
        label_probabilities={"yes": yes, "no": 1 - yes},
        gold_label="yes",
        gold_explanations=("it is so", "so it is"),
    )


@pytest.fixture(autouse=True)
def _fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "DRAWS", 200)
    monkeypatch.setattr(paired, "FLIPS", 1000)


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """A complete run of given answers, measured by every metric that needs no encoder."""
    number = itertools.count()

    def make(
        name: str,
        answers: Sequence[Answered],
        *,
        seed: int = 1,
        task: str = "small",
        nbert: Sequence[float] | None = None,
        **environment: Any,
    ) -> RunDirectory:
        predictions = [predicted(place, answered) for place, answered in enumerate(answers, start=1)]
        metrics = ("accuracy", "broken", "answer_confidence", "nll", "calibration_error", "temperature")
        measured = evaluate(predictions, [METRICS.get(metric)() for metric in metrics])
        run = RunDirectory(tmp_path / "runs" / str(next(number)) / f"{task}-{name}-{seed}")
        run.start({"task": task})
        run.write_predictions(predictions)
        columns = {k: list(v) for m in measured.values() for k, v in m.per_example.items()}
        run.write_scores(predictions, columns | ({"nbert": list(nbert)} if nbert else {}))
        records = {metric: metric_record(each) for metric, each in measured.items()}
        result = RunResult(
            run_id=f"{name}{seed}", task=task, model="starter", method="aq", objective=name,
            supervision="answer_and_explanation", prompt="feb", seed=seed, data_format="generated",
            problems_skipped=0, split_checksum=f"{task}{seed}", train_examples=48,
            evaluated_examples=len(predictions), inputs_cut=0, targets_cut=0, trainable_parameters=10,
            total_parameters=1000, metrics=records,
        )  # fmt: skip
        run.finish(result, ENVIRONMENT | environment)
        return run

    return make


@pytest.fixture
def make_summary(make_run: MakeRun) -> MakeSummary:
    """A summary of one task and two splits; CAREF's answers are given, the others wrong throughout."""

    def make(caref: Sequence[Answered], ce: Sequence[Answered] | None = None) -> Summary:
        wrong = [("no because it is not", 0.25)] * len(caref)
        said = {"before": [("mumble", 0.25)] * len(caref), "CE": ce or wrong, "CAREF": caref}
        runs = {
            name: [make_run(name, answers, seed=seed) for seed in (7, 3)] for name, answers in said.items()
        }
        return summarise(runs, compared=("CE", "CAREF"))

    return make
