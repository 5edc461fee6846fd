"""Promised logits are like the logits, whatever is done to them; and few things make them be computed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_flatten

from caref.kernels import DeferredLogits

BATCH, TOKENS, HIDDEN, VOCAB = 2, 4, 5, 7
LABELS = torch.tensor([[3, -100, 0, 6], [1, 2, -100, 5]])


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


ROW, OTHERS, MATRIX = numbers(VOCAB, seed=1), numbers(BATCH, TOKENS, VOCAB, seed=2), numbers(VOCAB, 3, seed=3)


def make_leaves(dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Hidden states, weight and bias."""
    shapes = ((BATCH, TOKENS, HIDDEN), (VOCAB, HIDDEN), (VOCAB,))
    return [numbers(*shape, seed=9 + n).to(dtype).requires_grad_() for n, shape in enumerate(shapes)]


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[torch.Size]]:
    """The shapes of the logits that were computed."""
    shapes, compute = [], DeferredLogits.compute

    def spy(self: DeferredLogits) -> Tensor:
        shapes.append(self.shape)
        return compute(self)

    monkeypatch.setattr(DeferredLogits, "compute", spy)
    return shapes


def as_like(rows: Tensor, x: Any) -> Tensor:
    return rows.to(x.dtype)


KEPT: dict[str, Callable[[Any], Any]] = {
    "all but the last": lambda x: x[..., :-1, :],
    "the last ones": lambda x: x[:, -3:],
    "an example": lambda x: x[1],
    "a position of each": lambda x: x[:, -1],
    "a position": lambda x: x[0, -1],
    "a position, the vocabulary named": lambda x: x[0, -1, :],
    "some of some": lambda x: x[:1, 1:4:2, :],
    "everything": lambda x: x[:],
    "dots": lambda x: x[...],
    "dots behind": lambda x: x[0, 1, ...],
    "dots between": lambda x: x[0, ..., :],
    "twice": lambda x: x[:, 1:][0, :-1],
    "a bias": lambda x: x + as_like(ROW, x),
    "a bias of two axes": lambda x: x + as_like(ROW, x)[None],
    "a bias of integers": lambda x: x + torch.arange(VOCAB),
    "a factor": lambda x: x * 3,
    "a factor in front": lambda x: -0.5 * x,
    "NumPy's factor in front": lambda x: np.float64(2.5) * x,
    "a divisor": lambda x: x / 7.5,
    "bias, scale, bias": lambda x: (x + as_like(ROW, x)) * 0.25 + 2 * as_like(ROW, x),
    "tanh": torch.tanh,
    "softcap": lambda x: torch.tanh(x / 1.5) * 1.5,
    "softcap, then a scale": lambda x: torch.tanh(x * 0.5) * 2 / -8,
    "bias and scale, then softcap": lambda x: torch.tanh((x + as_like(ROW, x)) * 3 / 2.0) * 2.0,
    "softcap, then some": lambda x: (torch.tanh(x / 3) * 3)[:, 1:],
}


@pytest.mark.parametrize("name", KEPT)
def test_a_promise_stays_one(name: str, computed: list[torch.Size]) -> None:
    leaves = make_leaves()
    expected = KEPT[name](F.linear(*leaves))
    found = KEPT[name](DeferredLogits.promise(*leaves))
    assert isinstance(found, DeferredLogits)
    assert (found.shape, found.dtype, found.device) == (expected.shape, expected.dtype, expected.device)
    assert computed == []
    assert_same(found.compute(), expected, leaves)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", KEPT)
def test_in_half_precision_it_is_no_worse(
    name: str, wide: bool, dtype: torch.dtype, computed: list[torch.Size]
) -> None:
    leaves = make_leaves(dtype)

    def apply(x: Any) -> Any:
        return KEPT[name](x.float() if wide else x)

    exact = KEPT[name](F.linear(*(leaf.detach().double() for leaf in leaves)))
    expected, found = apply(F.linear(*leaves)), apply(DeferredLogits.promise(*leaves))
    assert isinstance(found, DeferredLogits)
    assert computed == []
    assert found.dtype == expected.dtype == found.compute().dtype == (torch.float32 if wide else dtype)
    theirs, ours = (largest(each.double() - exact) for each in (expected, found.compute()))
    assert ours <= theirs + 2 * torch.finfo(dtype).eps * max(1.0, largest(exact))


def test_wide_logits_are_capped_in_float32() -> None:
    """As the logits are where they are made float32 first."""
    leaves = make_leaves(torch.bfloat16)
    promise = torch.tanh(DeferredLogits.promise(*leaves).float() / 3) * 3
    torch.testing.assert_close(promise.compute(), torch.tanh(F.linear(*leaves).float() / 3) * 3)


@pytest.mark.parametrize(
    ("dtype", "other", "kept"),
    [
        (torch.bfloat16, torch.bfloat16, True),
        (torch.bfloat16, torch.float32, True),
        (torch.bfloat16, torch.float16, True),
        (torch.float32, torch.float16, True),
        (torch.float32, torch.float64, False),
        (torch.bfloat16, torch.float64, False),
    ],
)
def test_a_bias_of_another_dtype(dtype: torch.dtype, other: torch.dtype, kept: bool) -> None:
    leaves, bias = make_leaves(dtype), ROW.to(other).requires_grad_()
    expected, found = F.linear(*leaves) + bias, DeferredLogits.promise(*leaves) + bias
    assert isinstance(found, DeferredLogits) == kept
    assert found.dtype == expected.dtype
    found = found.compute() if isinstance(found, DeferredLogits) else found
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=0.02, atol=0.02)
    (by_bias,) = torch.autograd.grad(found.sum(), bias)
    torch.testing.assert_close(by_bias, torch.full_like(bias, BATCH * TOKENS))


COMPUTED: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: x.softmax(-1),
    "log_softmax of F": lambda x: F.log_softmax(x, dim=-1),
    "argmax": lambda x: x.argmax(-1),
    "view": lambda x: x.view(-1, VOCAB),
    "size": lambda x: (x.size(), x.size(-1), x.dim(), x.ndim, x.numel()),
    "detach": lambda x: x.detach(),
    "requires_grad": lambda x: x.requires_grad,
    "transpose": lambda x: x.mT,
    "to another dtype": lambda x: x.to(torch.float32),
    "float of float64": lambda x: x.float(),
    "a token": lambda x: x[..., 2],
    "a token of each position": lambda x: x[:, :, -1],
    "some tokens": lambda x: x[..., 1:3],
    "one number": lambda x: x[0, 1, 2],
    "one number and dots": lambda x: x[0, 1, 2, ...],
    "an axis more": lambda x: x[None],
    "positions by tensor": lambda x: x[torch.tensor([1, 0])],
    "positions by mask": lambda x: x[LABELS != -100],
    "cat": lambda x: torch.cat([x, OTHERS], dim=1),
    "stack by keyword": lambda x: torch.stack(tensors=(x, x * 2), dim=0),
    "cross-entropy": lambda x: F.cross_entropy(x.flatten(0, 1), LABELS.flatten()),
    "cross-entropy by keyword": lambda x: F.cross_entropy(target=LABELS[0], input=x[0]),
    "cross-entropy as a module": lambda x: torch.nn.CrossEntropyLoss()(x[1], LABELS[1]),
    "tanh by keyword": lambda x: torch.tanh(input=x),
    "tanh as a method": lambda x: x.tanh(),
    "tanh of tanh": lambda x: torch.tanh(torch.tanh(x)),
    "sums": lambda x: (x.sum(), torch.sum(x), sum([x, x])),
    "where": lambda x: torch.where(OTHERS > 0, x, 0.0),
    "einsum": lambda x: torch.einsum("btv,vk->btk", x, MATRIX),
    "written into a tensor": lambda x: torch.zeros_like(OTHERS).index_copy(0, torch.tensor([1, 0]), x),
    "a bias on the left": lambda x: ROW + x,
    "a bias of one axis too many": lambda x: x + ROW[None, None, None],
    "a bias after a softcap": lambda x: torch.tanh(x) + ROW,
    "a bias for each position": lambda x: x + OTHERS,
    "a number more": lambda x: (x + 1, 1 + x),
    "factors of each": lambda x: (x * OTHERS, OTHERS * x, x * torch.tensor(2.0), x / OTHERS, x / ROW),
    "no factor": lambda x: (x * 0, x * float("inf"), x / float("inf")),
    "negative": lambda x: (-x, +x, abs(x)),
    "differences": lambda x: (x - 1, 1 - x, x - OTHERS, OTHERS - x, x - x * 2),
    "quotients": lambda x: (2 / x, OTHERS / x, x % 2),
    "powers": lambda x: (x**2, 2**x, OTHERS.abs() ** x),
    "products": lambda x: (x @ MATRIX, MATRIX.T @ x.mT, OTHERS.mT @ x, x[0] @ x[1].mT),
    "comparisons": lambda x: (x > 0, x < OTHERS, x >= 1, x <= 1, x == OTHERS, x != x + 0, x < OTHERS),
    "equality": lambda x: (x == 0.5, x != 0.5, x == x * 1.0, x != x * 2),
    "length": len,
    "iteration": list,
    "backwards": lambda x: list(reversed(x)),
    "membership": lambda x: (0.5 in x, x[0, 0, 0].item() in x),
    "NumPy": lambda x: (np.asarray(x.detach()), x.detach().numpy(), x.tolist()),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_all_else_is_done_to_the_logits(name: str, computed: list[torch.Size]) -> None:
    leaves = make_leaves()
    expected = COMPUTED[name](F.linear(*leaves))
    found = COMPUTED[name](DeferredLogits.promise(*leaves))
    assert computed
    assert_same(found, expected, leaves)


def test_operators_without_a_gradient() -> None:
    leaves = [leaf.detach() for leaf in make_leaves()]
    found, expected = ((x // 2, 7 // x, 5 % x) for x in (DeferredLogits.promise(*leaves), F.linear(*leaves)))
    assert_same(found, expected, leaves)
    one = DeferredLogits.promise(leaves[0], leaves[1][:1])[0, 0]
    assert (float(one), int(one), bool(one)) == (one.item(), int(one.item()), True)


def test_a_result_is_written_where_asked() -> None:
    promise, out = (
        DeferredLogits.promise(*(leaf.detach() for leaf in make_leaves())),
        torch.empty_like(OTHERS),
    )
    assert torch.tanh(promise, out=out) is out
    torch.testing.assert_close(out, promise.compute().tanh())


def test_what_a_tensor_refuses_is_refused() -> None:
    promise, logits = DeferredLogits.promise(*make_leaves()), F.linear(*make_leaves())
    for refused in (bool, np.asarray, lambda x: x[5], lambda x: x[0, 0, 0, 0], lambda x: x.no_such_thing):
        with pytest.raises(Exception) as theirs:
            refused(logits)
        with pytest.raises(theirs.type):
            refused(promise)


def test_it_cannot_be_changed_in_place() -> None:
    """What it is done to would be gone at once."""
    promise = DeferredLogits.promise(*make_leaves())
    with pytest.raises(AttributeError, match=r"cannot be changed in place, and 'mul_' asks for it"):
        promise.mul_(2)
    with pytest.raises(TypeError, match="item assignment"):
        promise[0] = 0.0
    with pytest.raises(AttributeError):
        promise.scale = 2.0  # type: ignore[misc]
    other = promise
    other *= 2
    other += ROW
    other /= 4
    assert isinstance(other, DeferredLogits)
    torch.testing.assert_close(other.compute(), (promise.compute() * 2 + ROW) / 4)


def test_it_can_be_copied_and_be_a_key() -> None:
    promise = DeferredLogits.promise(*(leaf.detach() for leaf in make_leaves()))
    assert torch.equal(copy.deepcopy(promise).compute(), promise.compute())
    assert {promise: 1}[promise] == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("with_bias", [True, False])
def test_autocast_decides_when_the_promise_is_made(dtype: torch.dtype, with_bias: bool) -> None:
    leaves = make_leaves(dtype)
    leaves = leaves if with_bias else leaves[:2]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside, expected = DeferredLogits.promise(*leaves), F.linear(*leaves)
        assert inside.dtype == expected.dtype == (torch.bfloat16 if dtype == torch.float32 else dtype)
        assert {each.dtype for each in (inside.hidden, inside.weight)} == {inside.dtype}
        assert inside.compute().dtype == inside.dtype
    assert_same(inside.compute(), expected, leaves, tolerance=0.02 if dtype == torch.float32 else 1e-12)

    outside, expected = DeferredLogits.promise(*leaves), F.linear(*leaves)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert outside.dtype == dtype
        found = outside.compute()
    assert found.dtype == dtype
    assert torch.equal(found, expected)


def test_what_it_depends_on_can_be_followed() -> None:
    """DistributedDataParallel goes from the tensors in an output to the parameters; it cannot begin there."""
    promise = DeferredLogits.promise(*make_leaves())
    assert promise.weight.grad_fn is not None
    assert promise.bias is not None
    assert promise.bias.grad_fn is not None
    frozen = DeferredLogits.promise(*(leaf.detach() for leaf in make_leaves()))
    assert not frozen.weight.requires_grad
    assert frozen.weight.data_ptr() == DeferredLogits.promise(frozen.hidden, frozen.weight).weight.data_ptr()


def largest(values: Tensor) -> float:
    return values.detach().abs().max().item()


def assert_same(found: Any, expected: Any, leaves: list[Tensor], tolerance: float = 1e-12) -> None:
    """Both are the same, of the same type and dtype, and so are their gradients."""
    found, form = tree_flatten(found)
    expected, right_form = tree_flatten(expected)
    assert form == right_form
    for each, right in zip(found, expected, strict=True):
        assert type(each) is type(right)
        if not isinstance(right, Tensor):
            np.testing.assert_allclose(each, right, rtol=tolerance, atol=tolerance)
            continue
        torch.testing.assert_close(each, right, rtol=tolerance, atol=tolerance, equal_nan=True)
        assert each.requires_grad == right.requires_grad
        if right.requires_grad and right.isfinite().all():
            upstream = torch.randn_like(right)
            for ours, theirs in zip(
                torch.autograd.grad(each, leaves, upstream, retain_graph=True),
                torch.autograd.grad(right, leaves, upstream, retain_graph=True),
                strict=True,
            ):
                torch.testing.assert_close(ours, theirs, rtol=10 * tolerance, atol=10 * tolerance)
