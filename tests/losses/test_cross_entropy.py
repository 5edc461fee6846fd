from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from caref.losses import cross_entropy_loss


def test_is_that_of_torch(batch: tuple[Tensor, Tensor]) -> None:
    logits, labels = batch
    expected = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    torch.testing.assert_close(cross_entropy_loss(logits, labels), expected)


def test_by_hand() -> None:
    logits = torch.tensor([3.0, 1.0]).log()  # P = 3/4, 1/4
    assert torch.isclose(cross_entropy_loss(logits, torch.tensor(1)), torch.tensor(4.0).log())


def test_extreme_logits() -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0]] * 2, requires_grad=True)
    value = cross_entropy_loss(logits, torch.tensor([0, 1]), reduction="none")
    value.sum().backward()
    assert value.tolist() == [0.0, 2e4]
    assert logits.grad is not None and logits.grad[1].tolist() == [1.0, -1.0, 0.0]
