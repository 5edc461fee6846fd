"""A model trained with the fused loss learns what it learns with the eager one, step by step."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from caref.kernels import defer_head
from caref.losses import CarefLoss

STEPS, BATCHES = 200, 20

Way = Literal["eager", "fused", "deferred"]
RAN = {"eager": "eager", "fused": "chunked", "deferred": "chunked, from hidden states"}


def tiny_model(dtype: torch.dtype) -> Any:
    """A T5 whose output layer is its embedding: the head's gradient meets that of the inputs."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=97, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_decoder_layers=1, num_heads=2,
        feed_forward_proj="gated-gelu", dropout_rate=0.0, pad_token_id=0, eos_token_id=1,
        decoder_start_token_id=0,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return T5ForConditionalGeneration(config).to(dtype).train()


def batches() -> list[tuple[Tensor, Tensor]]:
    """Inputs and labels: a target is the input's first tokens, and of unequal length."""
    generator = torch.Generator().manual_seed(1)
    made = []
    for _ in range(BATCHES):
        inputs = torch.randint(2, 97, (4, 6), generator=generator)
        labels = inputs[:, :5].clone()
        for row, length in enumerate(torch.randint(1, 6, (4,), generator=generator)):
            labels[row, length:] = -100
        made.append((inputs, labels))
    return made


def losses(way: Way, dtype: torch.dtype) -> Tensor:
    """The loss at each step of the training."""
    model = tiny_model(dtype)
    loss = CarefLoss(lambda_sced=0.1, lambda_kl=0.02, fused="off" if way == "eager" else "chunked")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    data, curve = batches(), []
    with defer_head(model) if way == "deferred" else nullcontext():
        for step in range(STEPS):
            inputs, labels = data[step % BATCHES]
            given = model.prepare_decoder_input_ids_from_labels(labels)
            value = loss(model(input_ids=inputs, decoder_input_ids=given), labels)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            curve.append(value.detach().double())
    assert loss.ran == RAN[way]
    return torch.stack(curve)


@pytest.fixture(scope="module")
def exact() -> Tensor:
    """The curve of the eager loss in float64."""
    curve = losses("eager", torch.float64)
    assert curve[-BATCHES:].mean() < 0.5 * curve[:BATCHES].mean()  # something was learnt
    return curve


@pytest.mark.parametrize("way", ["fused", "deferred"])
def test_the_same_curve_in_float64(way: Way, exact: Tensor) -> None:
    torch.testing.assert_close(losses(way, torch.float64), exact, rtol=1e-9, atol=0)


@pytest.fixture(scope="module")
def eager() -> Tensor:
    """The curve of the eager loss in float32."""
    return losses("eager", torch.float32)


@pytest.mark.parametrize("way", ["fused", "deferred"])
def test_in_float32_it_strays_no_further_than_rounding_takes_the_eager_one(
    way: Way, eager: Tensor, exact: Tensor
) -> None:
    rounding = (eager - exact).abs().max()
    assert rounding < 1e-3  # else the curves have parted for good, and the comparison says nothing
    found = losses(way, torch.float32)
    assert (found - eager).abs().max() <= 2 * rounding
    assert (found - exact).abs().max() <= 2 * rounding
