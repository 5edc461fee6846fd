from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from caref.losses import cross_entropy_loss
from caref.losses.eaft import EaftObjective, top_entropy_share


def gradient(loss: object, logits: Tensor, labels: Tensor) -> Tensor:
    logits = logits.clone().requires_grad_()
    loss(logits, labels).backward()  # type: ignore[operator]
    assert logits.grad is not None
    return logits.grad


def test_with_a_uniform_top_20_it_is_cross_entropy() -> None:
    logits = torch.full((2, 50), -3.0, dtype=torch.float64)
    logits[:, 10:30] = 1.5
    labels = torch.tensor([12, 40])
    torch.testing.assert_close(EaftObjective()(logits, labels), cross_entropy_loss(logits, labels))
    torch.testing.assert_close(
        gradient(EaftObjective(), logits, labels), gradient(cross_entropy_loss, logits, labels)
    )


def test_by_hand() -> None:
    """Two of the 20 tokens share all: the weight is log 2 / log 20, whatever is outside the 20."""
    logits = torch.full((50,), -1e4, dtype=torch.float64)
    logits[:2] = 0
    ce = math.log(2)
    weight = math.log(2) / math.log(20)
    assert EaftObjective()(logits, torch.tensor(0)).item() == pytest.approx(weight * ce)
    assert EaftObjective(eaft_alpha=2)(logits, torch.tensor(0)).item() == pytest.approx(weight**2 * ce)


def test_the_usual_divisor_is_about_log_20() -> None:
    assert math.log(20) == pytest.approx(3.0, abs=0.005)


def test_at_alpha_0_it_is_cross_entropy(batch: tuple[Tensor, Tensor]) -> None:
    torch.testing.assert_close(EaftObjective(eaft_alpha=0)(*batch), cross_entropy_loss(*batch))


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=40))
def test_the_weight_lies_between_0_and_1(scores: list[float]) -> None:
    share = top_entropy_share(torch.tensor(scores, dtype=torch.float64)).item()
    assert 0 <= share <= 1 + 1e-12


@given(st.lists(st.floats(-8, 8), min_size=2, max_size=40), st.floats(0.1, 3))
def test_the_weight_is_constant_in_the_gradient(scores: list[float], alpha: float) -> None:
    logits, label = torch.tensor(scores, dtype=torch.float64), torch.tensor(1)
    weight = top_entropy_share(logits) ** alpha
    torch.testing.assert_close(
        gradient(EaftObjective(eaft_alpha=alpha), logits, label),
        weight * gradient(cross_entropy_loss, logits, label),
    )


def test_a_confident_conflict_weighs_nothing() -> None:
    logits = torch.zeros(30)
    logits[0] = 1e4
    assert EaftObjective()(logits, torch.tensor(1)).item() == 0


def test_range() -> None:
    with pytest.raises(ValueError, match="eaft_alpha must be a finite number of at least 0, got -1"):
        EaftObjective(eaft_alpha=-1)
