from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from caref.losses import cross_entropy_loss
from caref.losses.label_smoothing import LabelSmoothingObjective


@given(
    scores=st.lists(st.floats(-30, 30), min_size=2, max_size=12),
    smoothing=st.floats(0, 0.99),
    label=st.integers(0, 1),
)
def test_it_is_that_of_torch(scores: list[float], smoothing: float, label: int) -> None:
    logits, target = torch.tensor([scores], dtype=torch.float64), torch.tensor([label])
    value = LabelSmoothingObjective(smoothing=smoothing)(logits, target).item()
    expected = F.cross_entropy(logits, target, label_smoothing=smoothing).item()
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_ignored_positions_do_not_count(batch: tuple[Tensor, Tensor]) -> None:
    logits, labels = batch
    expected = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=0.3)
    torch.testing.assert_close(LabelSmoothingObjective(smoothing=0.3)(logits, labels), expected)


def test_outside_its_span_the_target_is_the_label(batch: tuple[Tensor, Tensor]) -> None:
    logits, labels = batch
    loss = LabelSmoothingObjective(smoothing=0.5, span="explanation", separator_ids=[12])
    torch.testing.assert_close(loss(logits, labels), cross_entropy_loss(logits, labels))


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, float("nan")])
def test_range(smoothing: float) -> None:
    with pytest.raises(ValueError, match=r"smoothing must lie in \[0, 1\), got"):
        LabelSmoothingObjective(smoothing=smoothing)
