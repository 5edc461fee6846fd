"""The loss of a step is the mean over all target tokens of its examples, whatever the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from caref.errors import CarefError
from caref.losses.asft import AsftObjective
from caref.losses.cross_entropy import CrossEntropyObjective
from caref.methods import METHODS
from caref.models.loading import ModelSource, load_config, load_model

Run = Callable[..., Any]


@torch.no_grad()
def nats(model: Any, input_ids: list[int], labels: list[int]) -> list[float]:
    """The cross-entropy of each target token, by a forward pass of one example without padding."""
    if model.config.is_encoder_decoder:
        begun = [model.config.decoder_start_token_id, *labels[:-1]]
        logits = model(input_ids=torch.tensor([input_ids]), decoder_input_ids=torch.tensor([begun])).logits[0]
    else:
        logits = model(input_ids=torch.tensor([[*input_ids, *labels]])).logits[0]
        logits = logits[-len(labels) - 1 : -1]
    return torch.nn.functional.cross_entropy(logits, torch.tensor(labels), reduction="none").tolist()


@pytest.mark.parametrize("method", ["base", "lora", "prefix", "prompt"])
def test_the_loss_of_a_step_is_the_mean_over_its_tokens(tiny_any: Path, run: Run, method: str) -> None:
    shift = not load_config(ModelSource(str(tiny_any))).is_encoder_decoder
    trained = run(
        tiny_any,
        method=method,
        objective=CrossEntropyObjective(shift=shift),
        batch_size=2,
        gradient_accumulation=4,
        max_steps=1,
        dropout=False,
    )
    model = METHODS.get(method)().apply(load_model(ModelSource(str(tiny_any)))).eval()
    tokens = [nat for each in trained.data for nat in nats(model, each.question.input_ids, each.labels)]
    assert len(tokens) == sum(len(each.labels) for each in trained.data)
    expected = sum(tokens) / len(tokens)
    assert trained.log[0]["loss"] == pytest.approx(expected, rel=1e-5)
    assert trained.log[0]["ce"] == pytest.approx(expected, rel=1e-5)


def test_the_base_is_compared_at_the_same_tokens(tiny_gpt2: Path, run: Run) -> None:
    """The embeddings of prompt tuning have logits, too, and the base has none of these."""
    objective = AsftObjective(shift=True)
    trained = run(tiny_gpt2, method="prompt", objective=objective, batch_size=8, max_steps=1, dropout=False)
    base = load_model(ModelSource(str(tiny_gpt2))).eval()
    model = METHODS.get("prompt")().apply(load_model(ModelSource(str(tiny_gpt2)))).eval()
    divergences = []
    for each in trained.data:
        ids, count = torch.tensor([[*each.question.input_ids, *each.labels]]), len(each.labels)
        with torch.no_grad():
            ours, theirs = (
                m(input_ids=ids).logits[0, -count - 1 : -1].log_softmax(-1) for m in (model, base)
            )
        divergences += (theirs.exp() * (theirs - ours)).sum(-1).tolist()
    assert trained.log[0]["anchor"] == pytest.approx(sum(divergences) / len(divergences), rel=1e-4)


def test_a_decoder_only_model_learns(tiny_decoder: Path, run: Run) -> None:
    trained = run(
        tiny_decoder, method="base", objective=CrossEntropyObjective(shift=True), epochs=8, learning_rate=5e-3
    )
    assert trained.log[-1]["ce"] < trained.log[0]["ce"] - 0.5


def test_checkpointed_activations_lose_a_prefix(tiny_gpt2: Path, tiny_t5: Path, run: Run) -> None:
    for path in (tiny_gpt2, tiny_t5):
        with pytest.raises(CarefError, match=r"prefix tuning.*--gradient-checkpointing"):
            run(path, method="prefix", max_steps=1, gradient_checkpointing=True)
