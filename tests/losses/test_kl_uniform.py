from __future__ import annotations

import math
from types import ModuleType

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from caref.losses import kl_uniform_loss, sced_loss

ZERO = torch.tensor(0)
LOGITS = st.lists(st.floats(-30, 30), min_size=1, max_size=12)


def row(scores: list[float]) -> Tensor:
    return torch.tensor(scores, dtype=torch.float64)


def test_by_hand() -> None:
    logits = row([3.0, 1.0]).log()  # P = 3/4, 1/4
    expected = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert kl_uniform_loss(logits, ZERO).item() == pytest.approx(expected, rel=1e-12)


def test_against_the_reference(batch: tuple[Tensor, Tensor], reference: ModuleType) -> None:
    logits, labels = batch
    values = kl_uniform_loss(logits, labels, reduction="none")
    for where, _ in reference.rows(logits.numpy(), labels.numpy(), -100):
        assert values[where].item() == pytest.approx(reference.kl(logits[where].numpy()), rel=1e-10)


def test_gradient() -> None:
    logits = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    labels = torch.zeros(2, dtype=torch.int64)
    assert torch.autograd.gradcheck(lambda scores: kl_uniform_loss(scores, labels), logits)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1e4, -1e4, 0.0, 0.0], math.log(4)),
        ([-1e4] * 4, 0.0),
        ([1e4] * 4, 0.0),
        ([0.0, 0.0, -math.inf, -math.inf], math.log(2)),
    ],
)
def test_extreme_logits(scores: list[float], expected: float) -> None:
    logits = torch.tensor(scores, requires_grad=True)
    value = kl_uniform_loss(logits, ZERO)
    value.backward()
    assert value.item() == pytest.approx(expected, abs=1e-6)
    assert logits.grad is not None and logits.grad.abs().max() < 1e-6


@given(LOGITS)
def test_range(scores: list[float]) -> None:
    value = kl_uniform_loss(row(scores), ZERO).item()
    assert -1e-12 <= value <= math.log(len(scores)) + 1e-12


@given(LOGITS)
def test_sced_at_alpha_1_beta_0_is_not_quite_it(scores: list[float]) -> None:
    kl = kl_uniform_loss(row(scores), ZERO).item()
    sced = sced_loss(row(scores), ZERO, alpha=1, beta=0).item()
    assert kl - 1e-12 <= sced <= kl + 2 / math.e + 1e-12


def test_they_differ_where_a_token_is_below_uniform() -> None:
    logits = row([3.0, 1.0]).log()
    difference = sced_loss(logits, ZERO, alpha=1, beta=0) - kl_uniform_loss(logits, ZERO)
    assert difference.item() == pytest.approx(2 * 0.25 * math.log(2), rel=1e-12)
