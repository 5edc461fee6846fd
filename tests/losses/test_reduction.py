from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from caref.losses import caref_loss, cross_entropy_loss, kl_uniform_loss, sced_loss

LOSSES = [cross_entropy_loss, kl_uniform_loss, sced_loss, caref_loss]
Loss = Callable[..., Tensor]
Batch = tuple[Tensor, Tensor]


@pytest.mark.parametrize("loss", LOSSES)
def test_reductions_agree(loss: Loss, batch: Batch) -> None:
    logits, labels = batch
    kept = int((labels != -100).sum())
    each = loss(logits, labels, reduction="none")
    assert each.shape == labels.shape
    assert (each[labels == -100] == 0).all()
    assert (each[labels != -100] > 0).all()
    torch.testing.assert_close(loss(logits, labels, reduction="sum"), each.sum())
    torch.testing.assert_close(loss(logits, labels), each.sum() / kept)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("items", [7, torch.tensor(7), torch.tensor(7.0), torch.tensor([[3], [4]])])
def test_mean_divides_by_the_items_of_the_whole_batch(loss: Loss, batch: Batch, items: int | Tensor) -> None:
    logits, labels = batch
    total = loss(logits, labels, reduction="sum")
    torch.testing.assert_close(loss(logits, labels, num_items_in_batch=items), total / 7)
    torch.testing.assert_close(loss(logits, labels, reduction="sum", num_items_in_batch=items), total)


@pytest.mark.parametrize("loss", LOSSES)
def test_mask_equals_ignoring(loss: Loss, batch: Batch) -> None:
    logits, labels = batch
    mask = torch.ones_like(labels, dtype=torch.bool)
    mask[1, ::2] = False
    torch.testing.assert_close(loss(logits, labels, mask=mask), loss(logits, labels.masked_fill(~mask, -100)))


@pytest.mark.parametrize("loss", LOSSES)
def test_any_leading_shape(loss: Loss, batch: Batch) -> None:
    logits, labels = batch
    expected = loss(logits, labels, reduction="none")
    flat = loss(logits.flatten(0, 1), labels.flatten(), reduction="none")
    torch.testing.assert_close(flat, expected.flatten())
    torch.testing.assert_close(loss(logits[0, 0], labels[0, 0]), expected[0, 0])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("poison", [float("inf"), float("-inf"), float("nan")])
def test_what_is_ignored_reaches_neither_value_nor_gradient(loss: Loss, batch: Batch, poison: float) -> None:
    logits, labels = batch
    clean = logits.clone().requires_grad_()
    expected = loss(clean, labels)
    expected.backward()
    dirty = logits.masked_fill((labels == -100).unsqueeze(-1), poison).requires_grad_()
    value = loss(dirty, labels)
    value.backward()
    torch.testing.assert_close(value, expected, rtol=0, atol=0)
    torch.testing.assert_close(dirty.grad, clean.grad, rtol=0, atol=0)
    assert (dirty.grad[labels == -100] == 0).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("items", [None, 0, torch.tensor(0)])
def test_no_kept_position_gives_zero(loss: Loss, items: int | Tensor | None) -> None:
    logits = torch.full((2, 3, 4), float("nan"), requires_grad=True)
    value = loss(logits, torch.full((2, 3), -100), num_items_in_batch=items)
    value.backward()
    assert value.item() == 0
    assert logits.grad is not None and (logits.grad == 0).all()
    assert loss(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64)).item() == 0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(loss: Loss, batch: Batch, dtype: torch.dtype) -> None:
    logits, labels = batch
    half = logits.to(dtype).requires_grad_()
    single = half.detach().float().requires_grad_()
    value, expected = loss(half, labels), loss(single, labels)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, expected, rtol=0, atol=0)
    value.backward()
    expected.backward()
    assert half.grad is not None and single.grad is not None
    torch.testing.assert_close(half.grad, single.grad.to(dtype), rtol=0, atol=0)
    assert loss(logits, labels).dtype == torch.float64


@pytest.mark.parametrize("loss", LOSSES)
def test_other_ignore_index(loss: Loss, batch: Batch) -> None:
    logits, labels = batch
    other = labels.masked_fill(labels == -100, 3)
    kept = labels.masked_fill(labels == 3, -100)
    torch.testing.assert_close(loss(logits, other, ignore_index=3), loss(logits, kept))


@pytest.mark.parametrize("loss", LOSSES)
def test_bad_input_is_told_what_was_expected(loss: Loss) -> None:
    logits = torch.zeros(2, 3, 5)
    labels = torch.zeros(2, 3, dtype=torch.int64)
    expected = r"labels must have shape \(2, 3\), that of logits without its last axis, got \(1, 3\)"
    with pytest.raises(ValueError, match=expected):
        loss(logits, labels[:1])
    with pytest.raises(ValueError, match=r"mask must have shape \(2, 3\), .*, got \(2,\)"):
        loss(logits, labels, mask=torch.ones(2, dtype=torch.bool))
    with pytest.raises(TypeError, match=r"mask must be bool, got torch\.int64"):
        loss(logits, labels, mask=torch.ones_like(labels))
    with pytest.raises(TypeError, match=r"logits must be floating point, got torch\.int64"):
        loss(logits.long(), labels)
    with pytest.raises(TypeError, match=r"labels must be int64, got torch\.int32"):
        loss(logits, labels.int())
    with pytest.raises(ValueError, match=r"labels must lie in \[0, 5\) or be ignore_index \(-100\), got 5"):
        loss(logits, labels + 5)
    with pytest.raises(ValueError, match="got -1"):
        loss(logits, labels - 1)
    with pytest.raises(ValueError, match=r"vocab > 0, got \(2, 3, 0\)"):
        loss(logits[..., :0], labels)
    with pytest.raises(ValueError, match="reduction must be one of 'mean', 'sum', 'none', got 'avg'"):
        loss(logits, labels, reduction="avg")


@pytest.mark.gpu
@pytest.mark.parametrize("loss", LOSSES)
def test_no_wait_for_the_device(loss: Loss, batch: Batch) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    logits, labels = (tensor.cuda() for tensor in batch)
    logits.requires_grad_()
    items = (labels != -100).sum()
    torch.cuda.set_sync_debug_mode("error")
    try:
        loss(logits, labels, num_items_in_batch=items).backward()
        loss(logits, labels).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
