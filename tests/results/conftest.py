from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from caref.generation.prediction import Prediction
from caref.results.result import RunResult


@pytest.fixture
def make_result() -> Callable[..., RunResult]:
    """A whole result; keywords change its fields, and `values` the accuracy metric's."""

    def make(*, values: dict[str, float | None] | None = None, **changes: Any) -> RunResult:
        measured = {"accuracy": 50.0} if values is None else values
        fields = {
            "run_id": "0123456789abcdef",
            "task": "esnli",
            "model": "tiny",
            "method": "aq",
            "objective": "caref",
            "supervision": "answer_and_explanation",
            "prompt": "feb",
            "seed": 1,
            "data_format": "original-csv",
            "problems_skipped": 0,
            "split_checksum": "00",
            "train_examples": 48,
            "evaluated_examples": 350,
            "inputs_cut": 0,
            "targets_cut": 0,
            "trainable_parameters": 10,
            "total_parameters": 100,
            "metrics": {"accuracy": {"values": measured}},
        }
        return RunResult.model_validate(fields | changes)

    return make


@pytest.fixture
def prediction() -> Prediction:
    return Prediction(
        id="1",
        input="Is milk white?",
        text="yes because it is",
        label="yes",
        explanation="it is",
        broken=False,
        gold_label="yes",
        gold_explanations=("milk is white",),
    )
