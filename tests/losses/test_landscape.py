"""Where the objective pushes the correct token when all others share the rest equally."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from caref.losses import caref_loss

GRID = [step / 50 for step in range(1, 50)]


def push(p: float, vocab: int, **settings: object) -> float:
    """Positive where a gradient step raises the correct token's logit."""
    logits = torch.zeros(vocab, dtype=torch.float64)
    logits[0] = math.log(p / (1 - p) * (vocab - 1))
    logits.requires_grad_()
    caref_loss(logits, torch.tensor(0), **settings).backward()
    assert logits.grad is not None
    return -logits.grad[0].item()


def has_barrier(vocab: int, **settings: object) -> bool:
    """Whether the push is down somewhere and up again further on."""
    up = [push(p, vocab, **settings) > 0 for p in GRID]
    return any(later and not earlier for earlier, later in pairwise(up))


@pytest.mark.parametrize(
    ("vocab", "low", "high"), [(8000, 0.313, 0.654), (32128, 0.259, 0.669), (128256, 0.222, 0.677)]
)
def test_barrier_of_the_defaults(vocab: int, low: float, high: float) -> None:
    assert push(low - 0.001, vocab) > 0 > push(low + 0.001, vocab)
    assert push(high - 0.001, vocab) < 0 < push(high + 0.001, vocab)
    assert has_barrier(vocab)


@pytest.mark.parametrize(
    ("vocab", "settings"),
    [
        (1000, {}),
        (32128, {"alpha": 1.5}),
        (32128, {"alpha": 1.0}),
        (32128, {"lambda_sced": 0.01}),
        (1000, {"normalize": "log_vocab", "lambda_sced": 3.0}),
        (32128, {"normalize": "log_vocab", "lambda_sced": 3.0}),
        (256000, {"normalize": "log_vocab", "lambda_sced": 2.0}),
    ],
)
def test_no_barrier(vocab: int, settings: dict[str, object]) -> None:
    assert not has_barrier(vocab, **settings)


@pytest.mark.parametrize(
    ("settings", "optimum"),
    [({"lambda_sced": 0.0}, 0.834), ({"normalize": "log_vocab"}, 0.854)],
)
def test_optimum(settings: dict[str, object], optimum: float) -> None:
    assert push(optimum - 0.001, 32128, **settings) > 0 > push(optimum + 0.001, 32128, **settings)


def test_the_defaults_have_no_optimum_short_of_certainty() -> None:
    assert push(1 - 1e-9, 32128) > 0
