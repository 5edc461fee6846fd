from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from caref.losses import CarefLoss, Objective
from caref.methods import METHODS
from caref.models.encoding import EncodedExample, Encoder
from caref.models.loading import ModelSource, load_model, load_tokenizer
from caref.tasks.example import Example
from caref.tasks.prompt import PromptFormat
from caref.training.settings import TrainingSettings
from caref.training.train import TrainingResult, train

FORMAT = PromptFormat(name="test", input="explain the {thing}", context="thing", collapse=True)
ANSWERS = ("red", "blue", "bank account")


def examples(count: int) -> list[Example]:
    return [
        Example(
            str(n),
            {"thing": "dog sees the sky " * (1 + n % 3)},
            ANSWERS,
            ANSWERS[n % 3],
            ("it is " * (1 + n % 4) + "the cat",),
        )
        for n in range(count)
    ]


def switch_dropout_off(model: torch.nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        elif isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0


class Trained:
    """A training's outcome: the trained weights by name, its log, and what went in."""

    def __init__(self, model: torch.nn.Module, result: TrainingResult, data: list[EncodedExample]) -> None:
        self.model = model
        self.result = result
        self.data = data
        self.weights: dict[str, Tensor] = {
            name: weight.detach().clone() for name, weight in model.named_parameters() if weight.requires_grad
        }

    @property
    def log(self) -> list[dict[str, Any]]:
        """The log's entries of single steps."""
        return [entry for entry in self.result.history if "loss" in entry]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Trained]:
    def run(
        path: Path,
        *,
        method: str = "aq",
        objective: Objective | None = None,
        count: int = 8,
        seed: int = 1,
        work_dir: Path | None = None,
        on_step: Callable[[int, int], None] | None = None,
        report_to: tuple[str, ...] = (),
        dropout: bool = True,
        **settings: Any,
    ) -> Trained:
        source = ModelSource(str(path))
        base, tokenizer = load_model(source), load_tokenizer(source)
        encoder = Encoder(tokenizer, FORMAT, base.config)
        data = encoder.encode_all(examples(count))
        model = METHODS.get(method)().apply(base)
        if not dropout:
            switch_dropout_off(model)
        result = train(
            model,
            tokenizer,
            data,
            objective or CarefLoss(),
            TrainingSettings(**{"epochs": 2, "learning_rate": 1e-2, **settings}),
            seed=seed,
            work_dir=work_dir or tmp_path / "work",
            on_step=on_step,
            report_to=report_to,
        )
        return Trained(model, result, data)

    return run
