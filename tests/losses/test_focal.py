from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from caref.losses import cross_entropy_loss
from caref.losses.focal import FocalObjective


@given(scores=st.lists(st.floats(-30, 30), min_size=2, max_size=12), gamma=st.floats(0, 5))
def test_by_its_formula(scores: list[float], gamma: float) -> None:
    logits = torch.tensor(scores, dtype=torch.float64)
    log_p = logits.log_softmax(-1)[0].item()
    value = FocalObjective(gamma=gamma)(logits, torch.tensor(0)).item()
    expected = 0.0 if log_p == 0 else (-math.expm1(log_p)) ** gamma * -log_p
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_at_gamma_0_it_is_cross_entropy(batch: tuple[Tensor, Tensor]) -> None:
    torch.testing.assert_close(FocalObjective(gamma=0)(*batch), cross_entropy_loss(*batch), rtol=0, atol=0)


@given(st.floats(0.01, 0.99), st.floats(0, 5))
def test_a_likely_label_counts_less(p: float, gamma: float) -> None:
    logits = torch.tensor([math.log(p), math.log1p(-p)], dtype=torch.float64)
    ce = cross_entropy_loss(logits, torch.tensor(0))
    assert FocalObjective(gamma=gamma)(logits, torch.tensor(0)) <= ce + 1e-12


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
def test_gradient(gamma: float) -> None:
    logits = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    loss = FocalObjective(gamma=gamma)
    labels = torch.tensor([0, -100, 4])
    assert torch.autograd.gradcheck(lambda scores: loss(scores, labels), logits.requires_grad_())


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0])
def test_certainty_has_no_gradient(gamma: float) -> None:
    logits = torch.tensor([1e4, 0.0], requires_grad=True)
    FocalObjective(gamma=gamma)(logits, torch.tensor(0)).backward()
    assert logits.grad is not None and (logits.grad == 0).all()


def test_range() -> None:
    with pytest.raises(ValueError, match="gamma must be a finite number of at least 0, got -1"):
        FocalObjective(gamma=-1)
