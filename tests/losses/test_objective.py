"""What an objective adds to its equation: calling convention, spans, shift, warm-up, logs."""

from __future__ import annotations

import copy
import json
import pickle
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from caref.losses import CarefLoss, caref_loss, cross_entropy_loss, kl_uniform_loss, sced_loss

Batch = tuple[Tensor, Tensor]


@pytest.mark.parametrize("wrap", [lambda x: {"logits": x}, lambda x: SimpleNamespace(logits=x)])
def test_takes_the_output_of_a_model(batch: Batch, wrap: type) -> None:
    logits, labels = batch
    loss = CarefLoss()
    assert torch.equal(
        loss(wrap(logits), labels, num_items_in_batch=20), loss(logits, labels, num_items_in_batch=20)
    )


def test_says_what_is_missing(batch: Batch) -> None:
    with pytest.raises(TypeError, match="that holds them as 'logits', got tuple"):
        CarefLoss()(batch, batch[1])
    with pytest.raises(TypeError, match="labels must be a tensor, got NoneType"):
        CarefLoss()(batch[0], None)


def test_micro_batches_of_unequal_length_add_up_to_the_whole_batch() -> None:
    generator = torch.Generator().manual_seed(2)
    logits = torch.randn(4, 9, 13, dtype=torch.float64, generator=generator)
    labels = torch.randint(0, 13, (4, 9), generator=generator)
    for row, length in enumerate([9, 2, 5, 1]):
        labels[row, length:] = -100
    loss = CarefLoss(span="explanation", separator_ids=[int(labels[0, 1])])
    whole = logits.clone().requires_grad_()
    loss(whole, labels).backward()
    expected = loss.pop_components()
    parts = logits.clone().requires_grad_()
    items = (labels != -100).sum()
    for row in range(4):
        loss(parts[row : row + 1], labels[row : row + 1], num_items_in_batch=items).backward()
    torch.testing.assert_close(parts.grad, whole.grad, rtol=1e-12, atol=1e-15)
    assert loss.pop_components() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("span", ["answer", "explanation"])
def test_span_limits_the_penalties_but_not_their_divisor(span: str) -> None:
    logits = torch.randn(2, 4, 6, dtype=torch.float64)
    labels = torch.tensor([[1, 5, 2, -100], [1, 2, 3, 4]])  # the separator is 5
    answer = torch.tensor([[True, True, False, False], [True, True, True, True]])
    where = answer if span == "answer" else ~answer
    loss = CarefLoss(span=span, separator_ids=[5])
    value = loss(logits, labels)
    torch.testing.assert_close(value, caref_loss(logits, labels, penalty_mask=where))
    penalties = sced_loss(logits, labels, mask=where, reduction="sum")
    penalties = penalties + kl_uniform_loss(logits, labels, mask=where, reduction="sum")
    torch.testing.assert_close(value, cross_entropy_loss(logits, labels) + 0.1 * penalties / 7)


def test_the_spans_share_out_the_penalties() -> None:
    logits, labels = torch.randn(1, 5, 6), torch.tensor([[1, 5, 2, 3, 4]])
    answer, explanation = (
        CarefLoss(span=s, separator_ids=[5])(logits, labels) for s in ("answer", "explanation")
    )
    both = CarefLoss()(logits, labels) + cross_entropy_loss(logits, labels)
    torch.testing.assert_close(answer + explanation, both)


def test_the_separator_is_not_looked_for_in_the_filler_of_ignored_positions() -> None:
    logits, labels = torch.randn(1, 4, 6), torch.tensor([[-100, 1, 2, 3]])
    loss = CarefLoss(span="explanation", separator_ids=[0])
    torch.testing.assert_close(loss(logits, labels), cross_entropy_loss(logits, labels))


def test_shift_compares_with_the_next_label(batch: Batch) -> None:
    logits, labels = batch
    mask = torch.rand(labels.shape) < 0.7
    value = CarefLoss(shift=True)(logits, labels, mask=mask)
    torch.testing.assert_close(value, caref_loss(logits[:, :-1], labels[:, 1:], mask=mask[:, 1:]))
    assert CarefLoss(shift=True, reduction="none")(logits, labels).shape == (3, 4)
    assert CarefLoss(shift=True)(logits[:, :1], labels[:, :1]).item() == 0


def test_warmup_raises_the_weight_of_sced_linearly(batch: Batch) -> None:
    logits, labels = batch
    loss = CarefLoss(lambda_sced=0.4, sced_warmup=0.5)
    for progress, weight in [(0.0, 0.0), (0.125, 0.1), (0.5, 0.4), (1.0, 0.4)]:
        loss.set_progress(progress)
        torch.testing.assert_close(loss(logits, labels), caref_loss(logits, labels, lambda_sced=weight))


def test_warmup_needs_the_progress_in_training_only(batch: Batch) -> None:
    loss = CarefLoss(sced_warmup=0.1)
    with pytest.raises(
        ValueError, match=r"call set_progress\(fraction\) before each step, or give the Trainer"
    ):
        loss(*batch)
    with torch.no_grad():
        torch.testing.assert_close(loss(*batch), caref_loss(*batch))
    with pytest.raises(ValueError, match=r"progress must lie in \[0, 1\], got 1.5"):
        loss.set_progress(1.5)


def test_components_are_unweighted_means_per_position(batch: Batch) -> None:
    logits, labels = batch
    loss = CarefLoss(lambda_sced=0.3, lambda_kl=0.2)
    assert loss.pop_components() == {}
    value = loss(logits.requires_grad_(), labels)
    with torch.no_grad():
        loss(2 * logits, labels)  # an evaluation leaves no trace
    components = loss.pop_components()
    assert components == pytest.approx(
        {
            "ce": cross_entropy_loss(logits, labels).item(),
            "sced": sced_loss(logits, labels).item(),
            "kl": kl_uniform_loss(logits, labels).item(),
        }
    )
    assert value.item() == pytest.approx(components["ce"] + 0.3 * components["sced"] + 0.2 * components["kl"])
    assert loss.pop_components() == {}
    loss(logits, torch.full_like(labels, -100))
    assert loss.pop_components() == {"ce": 0, "sced": 0, "kl": 0}


def test_logs_hold_no_graph_and_do_not_grow(batch: Batch) -> None:
    logits, labels = batch
    loss = CarefLoss()
    for _ in range(3):
        loss(logits.requires_grad_(), labels)
    held = list(vars(loss)["_sums"].values())
    assert len(held) == 3
    assert all(value.dim() == 0 and not value.requires_grad for value in held)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_carry_settings_and_state(batch: Batch, duplicate: type) -> None:
    loss = CarefLoss(1.5, 0.5, 0.2, 0.3, span="answer", separator_ids=(4, 2), sced_warmup=0.25)
    loss.set_progress(0.2)
    value = loss(batch[0].requires_grad_(), batch[1])
    twin = duplicate(loss)
    assert twin.settings == loss.settings
    assert twin.pop_components() == loss.pop_components()
    assert torch.equal(twin(*batch), value)


def test_settings_are_the_constructors_arguments() -> None:
    loss = CarefLoss(1.5, 0.5, 0.2, 0.3, span="answer", separator_ids=(4, 2), shift=True)
    settings = json.loads(json.dumps(loss.settings))
    assert settings["separator_ids"] == [4, 2]
    assert CarefLoss(**settings).settings == loss.settings
    assert repr(loss).startswith("CarefLoss(") and "alpha=1.5" in repr(loss) and "span='answer'" in repr(loss)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"span": "prompt"}, "span must be one of 'all', 'answer', 'explanation', got 'prompt'"),
        ({"span": "answer"}, "span='answer' needs separator_ids, .* got None"),
        ({"span": "explanation", "separator_ids": []}, r"needs separator_ids, .* got \[\]"),
        ({"reduction": None}, "reduction must be one of 'mean', 'sum', 'none', got None"),
        ({"sced_warmup": 1.0}, r"sced_warmup must lie in \[0, 1\), got 1.0"),
        ({"sced_warmup": float("nan")}, r"sced_warmup must lie in \[0, 1\), got nan"),
    ],
)
def test_settings_out_of_range(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CarefLoss(**settings)


@pytest.mark.gpu
def test_no_wait_for_the_device(batch: Batch) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    logits, labels = (tensor.cuda() for tensor in batch)
    loss = CarefLoss(span="explanation", separator_ids=[3, 4], shift=True)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(2):
            loss(logits.requires_grad_(), labels).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert set(loss.pop_components()) == {"ce", "sced", "kl"}
