from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from caref.losses import OBJECTIVES, cross_entropy_loss
from caref.losses.entropy import EntropyObjective, entropy_per_position
from caref.losses.kl_uniform import kl_uniform_per_position

LOGITS = st.lists(st.floats(-30, 30), min_size=1, max_size=12)


def log_probs(scores: list[float]) -> Tensor:
    return torch.tensor(scores, dtype=torch.float64).log_softmax(-1)


def test_by_hand() -> None:
    value = entropy_per_position(torch.tensor([0.75, 0.25]).log())
    assert value.item() == pytest.approx(0.75 * math.log(4 / 3) + 0.25 * math.log(4), rel=1e-6)
    assert entropy_per_position(log_probs([0.0, 0.0, -math.inf])).item() == pytest.approx(math.log(2))


@given(LOGITS)
def test_it_is_log_v_less_the_divergence_from_uniform(scores: list[float]) -> None:
    entropy = entropy_per_position(log_probs(scores)).item()
    kl = kl_uniform_per_position(log_probs(scores)).item()
    assert entropy == pytest.approx(math.log(len(scores)) - kl, abs=1e-12)
    assert -1e-12 <= entropy <= math.log(len(scores)) + 1e-12


def test_it_is_subtracted(batch: tuple[Tensor, Tensor]) -> None:
    logits, labels = batch
    entropy = entropy_per_position(logits.log_softmax(-1))[labels != -100].mean()
    value = EntropyObjective(lambda_entropy=0.3)(logits, labels)
    torch.testing.assert_close(value, cross_entropy_loss(logits, labels) - 0.3 * entropy)


def test_its_gradient_is_that_of_kl(batch: tuple[Tensor, Tensor]) -> None:
    gradients = []
    for loss in (EntropyObjective(lambda_entropy=0.7), OBJECTIVES.get("kl")(lambda_kl=0.7)):
        logits = batch[0].clone().requires_grad_()
        loss(logits, batch[1]).backward()
        gradients.append(logits.grad)
    torch.testing.assert_close(*gradients)


def test_range() -> None:
    with pytest.raises(ValueError, match="lambda_entropy must be a finite number of at least 0, got -1"):
        EntropyObjective(lambda_entropy=-1)
