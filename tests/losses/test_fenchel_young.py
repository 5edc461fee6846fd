"""The losses of 1.5-entmax and sparsemax."""

from __future__ import annotations

import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from caref.errors import MissingExtraError
from caref.losses import OBJECTIVES

entmax = pytest.importorskip("entmax")
BOTH = pytest.mark.parametrize("name", ["entmax15", "sparsemax"])


@BOTH
def test_it_is_the_packages_loss(name: str, batch: tuple[Tensor, Tensor]) -> None:
    logits, labels = batch
    kept = labels != -100
    expected = getattr(entmax, f"{name}_loss")(logits[kept], labels[kept]).mean()
    torch.testing.assert_close(OBJECTIVES.get(name)()(logits, labels), expected, rtol=1e-12, atol=1e-14)


@BOTH
@given(scores=st.lists(st.floats(-5, 5), min_size=2, max_size=9), label=st.integers(0, 1))
def test_its_gradient_is_the_mapping_less_the_label(name: str, scores: list[float], label: int) -> None:
    logits = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    value = OBJECTIVES.get(name)()(logits, torch.tensor(label))
    assert value.item() >= -1e-12
    value.backward()
    expected = getattr(entmax, name)(logits.detach(), dim=-1)
    expected[label] -= 1
    torch.testing.assert_close(logits.grad, expected, rtol=1e-9, atol=1e-9)


@BOTH
def test_a_margin_is_enough(name: str) -> None:
    """Unlike cross-entropy it is exactly 0, with its gradient, at finite scores."""
    logits = torch.tensor([3.0, 0.5, 0.0], requires_grad=True)
    value = OBJECTIVES.get(name)()(logits, torch.tensor(0))
    value.backward()
    assert value.item() == 0
    assert logits.grad is not None and (logits.grad == 0).all()


@BOTH
def test_a_common_offset_costs_no_digits(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randint(0, 16, (4, 1000), generator=generator) / 8 + 2**20  # exact in float32
    labels = torch.tensor([0, 1, 2, 3])
    loss = OBJECTIVES.get(name)(reduction="none")
    exact = loss(logits.double(), labels)
    torch.testing.assert_close(loss(logits, labels).double(), exact, rtol=1e-5, atol=1e-5)


@BOTH
def test_half_precision_is_computed_in_float32(name: str) -> None:
    logits = torch.randn(4, 50, generator=torch.Generator().manual_seed(0)).bfloat16()
    labels = torch.tensor([0, 1, 2, 3])
    loss = OBJECTIVES.get(name)()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(logits, labels)
    assert torch.equal(value, loss(logits.float(), labels))


@BOTH
def test_without_the_package_it_cannot_be_made(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "entmax", None)
    entry = OBJECTIVES.get(name)
    with pytest.raises(MissingExtraError, match=r"need the package entmax: pip install 'caref\[entmax\]'"):
        entry()
