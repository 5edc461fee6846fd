from __future__ import annotations

import math
from types import ModuleType

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from caref.losses import CarefLoss, caref_loss, cross_entropy_loss, kl_uniform_loss, sced_loss

Batch = tuple[Tensor, Tensor]
GRID = [(alpha, beta) for alpha in (1.0, 1.5, 2.0, 2.5) for beta in (0.0, 0.5, 1.0, 2.0)]


@pytest.mark.parametrize(("alpha", "beta"), GRID)
@pytest.mark.parametrize("normalize", [None, "log_vocab"])
def test_against_the_reference(
    batch: Batch, reference: ModuleType, alpha: float, beta: float, normalize: str | None
) -> None:
    logits, labels = batch
    value = caref_loss(
        logits, labels, alpha=alpha, beta=beta, lambda_sced=0.3, lambda_kl=0.2, normalize=normalize
    )
    expected = reference.caref(
        logits.numpy(), labels.numpy(), alpha, beta, 0.3, 0.2, log_vocab=normalize is not None
    )
    assert value.item() == pytest.approx(expected, rel=1e-12)


def test_the_defaults(batch: Batch, reference: ModuleType) -> None:
    logits, labels = batch
    expected = reference.caref(logits.numpy(), labels.numpy(), 2, 1, 0.1, 0.1)
    assert caref_loss(logits, labels).item() == pytest.approx(expected, rel=1e-12)
    assert CarefLoss()(logits, labels).item() == pytest.approx(expected, rel=1e-12)


def test_without_penalties_it_is_cross_entropy(batch: Batch) -> None:
    logits, labels = batch
    value = caref_loss(logits, labels, lambda_sced=0, lambda_kl=0)
    torch.testing.assert_close(value, F.cross_entropy(logits.flatten(0, 1), labels.flatten()))


@pytest.mark.parametrize(("alpha", "beta"), GRID)
def test_gradcheck(alpha: float, beta: float) -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(3, 5, dtype=torch.float64, generator=generator).requires_grad_()
    assert (logits.softmax(-1) * 5 - 1).abs().min() > 0.001
    labels = torch.tensor([0, -100, 4])
    assert torch.autograd.gradcheck(lambda x: caref_loss(x, labels, alpha=alpha, beta=beta), logits)


@pytest.mark.parametrize(("alpha", "beta"), GRID)
def test_extreme_logits_stay_finite(alpha: float, beta: float) -> None:
    logits = torch.tensor(
        [[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0], [0.0, 0.0, 0.0], [1e4, 1e4, 1e4]], requires_grad=True
    )
    value = caref_loss(logits, torch.zeros(4, dtype=torch.int64), alpha=alpha, beta=beta)
    value.backward()
    assert value.isfinite()
    assert logits.grad is not None and logits.grad.isfinite().all()


def test_penalty_mask_limits_the_penalties_only(batch: Batch) -> None:
    logits, labels = batch
    where = torch.zeros_like(labels, dtype=torch.bool)
    where[:, 1:3] = True
    kept = int((labels != -100).sum())
    penalties = sced_loss(logits, labels, mask=where, reduction="sum")
    penalties = penalties + kl_uniform_loss(logits, labels, mask=where, reduction="sum")
    expected = cross_entropy_loss(logits, labels) + 0.1 * penalties / kept
    torch.testing.assert_close(caref_loss(logits, labels, penalty_mask=where), expected)
    with pytest.raises(ValueError, match=r"penalty_mask must have shape \(3, 5\)"):
        caref_loss(logits, labels, penalty_mask=where[:1])


@pytest.mark.parametrize("make", [CarefLoss, lambda **s: caref_loss(torch.zeros(2), torch.tensor(0), **s)])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.9}, "alpha must be a finite number of at least 1, got 0.9"),
        ({"beta": -1}, "beta must be a finite number of at least 0, got -1"),
        ({"lambda_sced": -0.1}, "lambda_sced must be a finite number of at least 0, got -0.1"),
        ({"lambda_kl": math.inf}, "lambda_kl must be a finite number of at least 0, got inf"),
        ({"normalize": "yes"}, "normalize must be one of None, 'log_vocab', got 'yes'"),
        ({"reduction": "avg"}, "reduction must be one of 'mean', 'sum', 'none', got 'avg'"),
    ],
)
def test_settings_out_of_range(make: type[CarefLoss], settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**settings)
