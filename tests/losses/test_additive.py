from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from caref.losses import cross_entropy_loss
from caref.losses.additive import AdditiveObjective, gini_per_position
from caref.losses.entropy import entropy_per_position


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=12))
def test_gini_is_one_less_the_sum_of_squares(scores: list[float]) -> None:
    logits = torch.tensor(scores, dtype=torch.float64)
    value = gini_per_position(logits.log_softmax(-1)).item()
    assert value == pytest.approx(1 - (logits.softmax(-1) ** 2).sum().item(), abs=1e-12)
    assert -1e-12 <= value <= 1 - 1 / len(scores) + 1e-12


def test_gini_by_hand() -> None:
    assert gini_per_position(torch.tensor([0.75, 0.25]).log()).item() == pytest.approx(0.375)


def test_both_are_added(batch: tuple[Tensor, Tensor]) -> None:
    logits, labels = batch
    kept = logits[labels != -100].log_softmax(-1)
    expected = cross_entropy_loss(logits, labels)
    expected = expected + 0.1 * entropy_per_position(kept).mean() + 0.05 * gini_per_position(kept).mean()
    torch.testing.assert_close(AdditiveObjective()(logits, labels), expected)


@pytest.mark.parametrize("name", ["lambda_ent", "lambda_sparse"])
def test_range(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a finite number of at least 0, got -1"):
        AdditiveObjective(**{name: -1})
