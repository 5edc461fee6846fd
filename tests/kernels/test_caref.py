"""The fused loss against the eager one, in all that both can be asked, and in what only it promises."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any
from unittest import mock

import pytest
import torch
import torch._dynamo
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from caref.kernels import DeferredLogits, backends, caref_loss, chunked, linear_caref_loss
from caref.kernels.compiled import _compiled
from caref.kernels.through_head import _add_product
from caref.kernels.through_head import linear as product
from caref.losses import caref_loss as eager_loss

from .cases import (
    Case,
    HeadCase,
    assert_no_worse,
    assert_same,
    cases,
    cast,
    head_cases,
    largest,
    logits_of_head,
    outcome,
)

FLOAT64 = torch.float64
HALVES = [torch.bfloat16, torch.float16]
INF, NAN = float("inf"), float("nan")
BLOCKS = st.sampled_from([None, 1, 700])
"""Values of a block of the chunked kernel: few, so that there are many blocks."""

# The same examples each time: how far rounding errors go is a matter of luck.
THOROUGH = settings(max_examples=150, deadline=None, derandomize=True)
BRIEF = settings(max_examples=80, deadline=None, derandomize=True)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def blocks(values: int | None) -> Any:
    if values is None:
        return nullcontext()
    return mock.patch.object(chunked, "_block_values", lambda device: values)


def eager_of_logits(case: Case) -> Callable[..., Tensor]:
    return lambda logits: eager_loss(logits, case.labels, **case.options)


def fused_of_logits(case: Case, fused: str = "chunked") -> Callable[..., Tensor]:
    return lambda logits: caref_loss(logits, case.labels, fused=fused, **case.options)


def eager_of_head(head: HeadCase) -> Callable[..., Tensor]:
    return lambda *leaves: eager_loss(
        logits_of_head(*leaves, **head.head), head.case.labels, **head.case.options
    )


def fused_of_head(head: HeadCase, fused: str = "chunked") -> Callable[..., Tensor]:
    return lambda hidden, weight, bias=None: linear_caref_loss(
        hidden,
        weight,
        head.case.labels,
        bias=bias,
        memory_mib=head.memory_mib,
        fused=fused,
        **head.head,
        **head.case.options,
    )


# --- values and gradients ---------------------------------------------------------------------------


@THOROUGH
@given(cases(), BLOCKS)
def test_of_logits_in_float64(case: Case, block: int | None) -> None:
    expected = outcome(eager_of_logits(case), [case.logits], case.upstream)
    with blocks(block):
        assert_same(outcome(fused_of_logits(case), [case.logits], case.upstream), expected)


@THOROUGH
@given(head_cases(), BLOCKS)
def test_of_a_head_in_float64(head: HeadCase, block: int | None) -> None:
    upstream = head.case.upstream
    expected = outcome(eager_of_head(head), head.leaves, upstream)
    with blocks(block):
        assert_same(outcome(fused_of_head(head), head.leaves, upstream), expected)


@pytest.mark.parametrize(("dtype", "digits"), [(torch.float32, 32), *((each, 2) for each in HALVES)])
@BRIEF
@given(case=cases(tame=True))
def test_of_logits_no_less_exact_than_eager(dtype: torch.dtype, digits: float, case: Case) -> None:
    logits, upstream = case.logits.to(dtype), case.upstream
    eager = eager_of_logits(case)
    assert_no_worse(
        outcome(fused_of_logits(case), [logits], upstream),
        outcome(eager, [logits], upstream),
        outcome(eager, [logits.double()], upstream),
        dtype,
        digits,
    )


@pytest.mark.parametrize(("dtype", "digits"), [(torch.float32, 32), *((each, 8) for each in HALVES)])
@BRIEF
@given(head=head_cases(tame=True))
def test_of_a_head_no_less_exact_than_eager(dtype: torch.dtype, digits: float, head: HeadCase) -> None:
    leaves, upstream = cast(head.leaves, dtype), head.case.upstream
    eager = eager_of_head(head)
    assert_no_worse(
        outcome(fused_of_head(head), leaves, upstream),
        outcome(eager, leaves, upstream),
        outcome(eager, cast(leaves, FLOAT64), upstream),
        dtype,
        digits,
    )


@pytest.mark.parametrize("beta", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_float32_where_the_derivative_is_steep(alpha: float, beta: float) -> None:
    logits, labels = 4 * torch.randn(400, 20), torch.randint(0, 20, (400,))
    options = {"alpha": alpha, "beta": beta, "lambda_sced": 1.0, "reduction": "sum"}
    one = torch.tensor(1.0)
    exact = outcome(lambda x: eager_loss(x, labels, **options), [logits.double()], one)[1]
    eager = outcome(lambda x: eager_loss(x, labels, **options), [logits], one)[1]
    found = outcome(lambda x: caref_loss(x, labels, fused="chunked", **options), [logits], one)[1]
    # In the rows near P = 1 the error of either is large, and by how much a matter of luck.
    error, same = (each.sub(exact).norm(dim=1) for each in (found, eager))
    assert error.median() <= 1.25 * same.median()
    assert error.norm() <= 4 * same.norm()


@pytest.mark.parametrize("beta", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("spread", [1, 3])
@pytest.mark.parametrize("vocab", [1000, 8000])
def test_float32_over_a_large_vocabulary(vocab: int, spread: float, beta: float) -> None:
    """The many small probabilities beside a large one are not lost in a sum."""
    labels = torch.randint(0, vocab, (40,))
    logits = spread * torch.randn(40, vocab)
    logits[torch.arange(40), torch.randint(0, vocab, (40,))] += 7 + 3 * torch.randn(40)
    options = {"beta": beta, "reduction": "none"}
    ones = torch.ones(40)
    exact = outcome(lambda x: eager_loss(x, labels, **options), [logits.double()], ones)
    eager = outcome(lambda x: eager_loss(x, labels, **options), [logits], ones)
    found = outcome(lambda x: caref_loss(x, labels, fused="chunked", **options), [logits], ones)
    # Both begin with log_softmax, whose own error is that of the value.
    limit = max(largest(each - right) for each, right in zip(eager, exact, strict=True))
    for each, right in zip(found, exact, strict=True):
        assert largest(each - right) <= limit + 16 * torch.finfo(torch.float32).eps


def test_float16_under_loss_scaling() -> None:
    """What is too small for float16 when divided by the positions is not when the loss is scaled up."""
    logits, labels = torch.randn(32, 8000).half(), torch.randint(0, 8000, (32,))
    scale = torch.tensor(65536.0)
    options = {"num_items_in_batch": 2000}
    exact = outcome(lambda x: eager_loss(x, labels, **options), [logits.double()], scale)[1]
    found = outcome(lambda x: caref_loss(x, labels, fused="chunked", **options), [logits], scale)[1]
    others = torch.ones_like(exact, dtype=torch.bool).scatter(1, labels.unsqueeze(1), False)
    assert ((found - exact) * others).norm() <= 1e-3 * (exact * others).norm()


def test_the_values_of_no_penalty_are_those_of_cross_entropy() -> None:
    logits, labels = torch.randn(7, 11, dtype=FLOAT64), torch.randint(0, 11, (7,))
    value = caref_loss(logits, labels, lambda_sced=0, lambda_kl=0, fused="chunked")
    torch.testing.assert_close(value, F.cross_entropy(logits, labels), rtol=1e-14, atol=0)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 1.7, 2.0])
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 2.5])
def test_gradcheck(alpha: float, beta: float, reduction: str) -> None:
    # At alpha = 1 the derivative jumps where a probability is that of the uniform distribution.
    logits = torch.randn(3, 5, dtype=FLOAT64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    assert (logits.softmax(-1) * 5 - 1).abs().min() > 0.001
    hidden = torch.randn(3, 4, dtype=FLOAT64, requires_grad=True)
    weight, bias = (torch.randn(*shape, dtype=FLOAT64, requires_grad=True) for shape in [(5, 4), (5,)])
    assert (logits_of_head(hidden, weight, bias, softcap=2.0).softmax(-1) * 5 - 1).abs().min() > 0.001
    labels = torch.tensor([0, -100, 4])
    options = {"alpha": alpha, "beta": beta, "reduction": reduction, "fused": "chunked"}
    assert torch.autograd.gradcheck(lambda x: caref_loss(x, labels, **options), logits)
    assert torch.autograd.gradcheck(
        lambda x, w, b: linear_caref_loss(x, w, labels, bias=b, softcap=2.0, **options),
        (hidden, weight, bias),
    )


def test_the_chunk_and_the_block_change_nothing_but_the_order_of_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("caref.kernels.chunks._FEWEST_ROWS", 1)
    hidden, weight = torch.randn(60, 6, dtype=FLOAT64), torch.randn(31, 6, dtype=FLOAT64)
    labels = torch.randint(0, 31, (60,)).masked_fill(torch.rand(60) < 0.2, -100)

    def loss(memory_mib: float) -> Callable[..., Tensor]:
        return lambda h, w: linear_caref_loss(h, w, labels, memory_mib=memory_mib, fused="chunked")

    one = torch.tensor(1.0)
    whole = outcome(loss(INF), [hidden, weight], one)
    for rows in (1, 7, 59):
        assert_same(outcome(loss(rows * 31 * 8 / 2**20), [hidden, weight], one), whole, 1e-13)


@pytest.mark.parametrize("layout", ["transposed", "sliced", "expanded"])
def test_any_layout(layout: str) -> None:
    whole = torch.randn(4, 6, 9, dtype=FLOAT64)
    change = {
        "transposed": lambda x: x.transpose(0, 1),
        "sliced": lambda x: x[:, 1:, ::2],
        "expanded": lambda x: x[:1].expand(5, -1, -1),
    }[layout]
    other = torch.randn(change(whole).shape[-1], 7, dtype=FLOAT64).t()  # a weight that is a view
    labels = torch.randint(0, change(whole).shape[-1], change(whole).shape[:-1])
    of_weight = torch.randint(0, 7, labels.shape)
    one = torch.tensor(1.0)
    assert_same(
        outcome(lambda x: caref_loss(change(x), labels, fused="chunked"), [whole], one),
        outcome(lambda x: eager_loss(change(x), labels), [whole], one),
    )
    assert_same(
        outcome(
            lambda x, w: linear_caref_loss(change(x), w, of_weight, fused="chunked"), [whole, other], one
        ),
        outcome(lambda x, w: eager_loss(change(x) @ w.T, of_weight), [whole, other], one),
    )


# --- rows that are out of the ordinary --------------------------------------------------------------

EXTREME = [
    [1e4, -1e4, 0.0, 0.0],
    [-1e4, 1e4, 1e4, -1e4],
    [0.0, 0.0, 0.0, 0.0],
    [1e4, 1e4, 1e4, 1e4],
    [1e4, 9999.0, 9998.0, -1e4],
    [6e4, 6e4 - 32, 6e4, 5.9e4],
    [-6e4, -6e4, -6e4, 6e4],
    [1e-2, -1e-2, 0.0, 0.0],
    [0.0, -20.0, -21.0, -22.0],
    [0.0, -INF, 1.0, -INF],
    [0.0, -INF, -INF, -INF],
]


@pytest.mark.parametrize("dtype", [FLOAT64, torch.float32, *HALVES])
@pytest.mark.parametrize("label", [0, 2])
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 2.0])
def test_special_rows(dtype: torch.dtype, label: int, alpha: float, beta: float) -> None:
    scores = torch.tensor(EXTREME, dtype=dtype)
    labels = torch.full((len(scores),), label)
    labels[-1] = 0  # the others are excluded
    check_special_rows(scores, labels, alpha=alpha, beta=beta, fused="chunked")


def check_special_rows(scores: Tensor, labels: Tensor, *, fused: str, **exponents: float) -> None:
    options: dict[str, Any] = {**exponents, "reduction": "none"}
    ones = torch.ones(len(scores))
    exact = outcome(lambda x: eager_loss(x, labels, **options), [scores.double()], ones)
    eager = outcome(lambda x: eager_loss(x, labels, **options), [scores], ones)
    found = outcome(lambda x: caref_loss(x, labels, fused=fused, **options), [scores], ones)
    # In float64 eager counts as exact.
    digits = 1e6 if scores.dtype == FLOAT64 else 4
    for rows in zip(*found, *eager, *exact, strict=True):
        assert_no_worse(rows[:2], rows[2:4], rows[4:], scores.dtype, digits)


def test_the_gradient_of_a_uniform_and_of_a_certain_row_is_that_of_cross_entropy() -> None:
    logits = torch.tensor([[2.0, 2.0, 2.0, 2.0], [1e4, 0.0, 0.0, 0.0]], dtype=FLOAT64, requires_grad=True)
    expected = torch.tensor([[0.25, -0.75, 0.25, 0.25], [0.0, 0.0, 0.0, 0.0]], dtype=FLOAT64)
    for alpha in (1.0, 1.5, 2.0):
        value = caref_loss(logits, torch.tensor([1, 0]), reduction="sum", alpha=alpha, fused="chunked")
        torch.testing.assert_close(torch.autograd.grad(value, logits)[0], expected, rtol=0, atol=1e-15)


def nothing_counts() -> Iterator[Any]:
    labels = torch.tensor([[1, 2, 0]])
    yield pytest.param((1, 3), torch.full((1, 3), -100), {}, id="labels")
    yield pytest.param((1, 3), labels, {"mask": torch.zeros(1, 3, dtype=torch.bool)}, id="mask")
    yield pytest.param((0,), torch.zeros(0, dtype=torch.int64), {}, id="no position")
    yield pytest.param((2, 0), torch.zeros(2, 0, dtype=torch.int64), {}, id="no token")
    yield pytest.param((), torch.tensor(-100), {}, id="one")


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("shape", "labels", "options"), nothing_counts())
def test_no_position(shape: tuple[int, ...], labels: Tensor, options: Any, reduction: str) -> None:
    options = {**options, "reduction": reduction, "fused": "chunked"}
    logits = torch.full((*shape, 4), NAN)
    hidden, weight, bias = torch.full((*shape, 5), NAN), torch.randn(4, 5), torch.randn(4)
    calls = [
        (lambda x: caref_loss(x, labels, **options), [logits]),
        (
            lambda x, w, b: linear_caref_loss(x, w, labels, bias=b, scale=0.5, **options),
            [hidden, weight, bias],
        ),
    ]
    for loss, leaves in calls:
        value, *gradients = outcome(loss, leaves, torch.ones(shape if reduction == "none" else ()))
        assert value.shape == (shape if reduction == "none" else ())
        for each in (value, *gradients):
            assert (each == 0).all()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("by", ["labels", "mask"])
def test_what_is_ignored_reaches_nothing(by: str, bad: float, reduction: str) -> None:
    logits, hidden, weight = torch.randn(2, 5, 7), torch.randn(2, 5, 3), torch.randn(7, 3)
    labels, ignored = torch.randint(0, 7, (2, 5)), torch.zeros(2, 5, dtype=torch.bool)
    ignored[0, 1:3] = ignored[1, 4] = True
    options: dict[str, Any] = {"reduction": reduction, "fused": "chunked"}
    if by == "labels":
        labels[ignored] = -100
    else:
        options["mask"] = ~ignored
    upstream = torch.rand((2, 5) if reduction == "none" else ())

    def outcomes(filler: float) -> list[Tensor]:
        above = upstream.masked_fill(ignored, filler) if reduction == "none" else upstream
        return [
            *outcome(
                lambda x: caref_loss(x, labels, **options),
                [logits.masked_fill(ignored.unsqueeze(-1), filler)],
                above,
            ),
            *outcome(
                lambda x, w: linear_caref_loss(x, w, labels, **options),
                [hidden.masked_fill(ignored.unsqueeze(-1), filler), weight],
                above,
            ),
        ]

    for found, expected in zip(outcomes(bad), outcomes(0.0), strict=True):
        assert torch.equal(found, expected)
    assert (outcomes(bad)[1][ignored] == 0).all()


# --- autograd ---------------------------------------------------------------------------------------


def of_both() -> list[tuple[Callable[..., Tensor], list[Tensor]]]:
    """Each entrance with its tensors, and the head once more with a value for every position."""
    torch.manual_seed(3)
    logits, hidden, weight = torch.randn(4, 9), torch.randn(4, 3), torch.randn(9, 3)
    labels, upstream = torch.tensor([1, -100, 8, 0]), torch.rand(4)
    options = {"fused": "chunked"}
    return [
        (lambda x: caref_loss(x, labels, **options), [logits]),
        (lambda x, w: linear_caref_loss(x, w, labels, **options), [hidden, weight]),
        (
            lambda x, w: (linear_caref_loss(x, w, labels, reduction="none", **options) * upstream).sum(),
            [hidden, weight],
        ),
    ]


ENTRANCES = pytest.mark.parametrize("entrance", [0, 1, 2], ids=["logits", "head", "head, each"])


@ENTRANCES
def test_no_second_derivative(entrance: int) -> None:
    loss, leaves = of_both()[entrance]
    leaves = [each.requires_grad_() for each in leaves]
    message = (
        r"the fused loss has a first derivative only, and create_graph=True asks for a second; "
        r"use the eager one: fused='off', or the functions of caref\.losses"
    )
    with pytest.raises(RuntimeError, match=message):
        torch.autograd.grad(loss(*leaves), leaves, create_graph=True)


@ENTRANCES
def test_the_same_gradients_twice(entrance: int) -> None:
    loss, leaves = of_both()[entrance]
    leaves = [each.requires_grad_() for each in leaves]
    value = 3 * loss(*leaves)
    first = torch.autograd.grad(value, leaves, retain_graph=True)
    second = torch.autograd.grad(value, leaves, retain_graph=True)
    anew = torch.autograd.grad(3 * loss(*leaves), leaves)
    for each, again, other in zip(first, second, anew, strict=True):
        assert torch.equal(each, again)
        assert torch.equal(each, other)


@ENTRANCES
def test_the_inputs_stay_as_they_are(entrance: int) -> None:
    loss, leaves = of_both()[entrance]
    before = [each.clone() for each in leaves]
    leaves = [each.requires_grad_() for each in leaves]
    loss(*leaves).backward()
    assert all(torch.equal(each, old) for each, old in zip(leaves, before, strict=True))


def test_a_weight_that_changed_before_the_backward_pass_is_noticed() -> None:
    loss, (hidden, weight) = of_both()[2]
    value = loss(hidden, weight.requires_grad_())
    with torch.no_grad():
        weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


class Spies:
    """What the products of a head were asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.weights: list[tuple[int, ...]] = []
        self.rows: dict[tuple[int, ...], list[int]] = {}
        monkeypatch.setattr("caref.kernels.through_head._add_product", self._add_product)
        monkeypatch.setattr("caref.kernels.through_head.linear", self._linear)

    def _add_product(self, total: Tensor, left: Tensor, right: Tensor) -> None:
        self.weights.append(tuple(total.shape))
        _add_product(total, left, right)

    def _linear(self, inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        self.rows.setdefault(tuple(weight.shape), []).append(len(inputs))
        return product(inputs, weight, bias)


@pytest.fixture
def spies(monkeypatch: pytest.MonkeyPatch) -> Spies:
    return Spies(monkeypatch)


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("needed", ["hidden", "weight", "bias", "hidden weight", "hidden weight bias"])
def test_only_the_gradients_that_are_needed(needed: str, reduction: str, spies: Spies) -> None:
    tensors = {"hidden": torch.randn(6, 3), "weight": torch.randn(9, 3), "bias": torch.randn(9)}
    for name in needed.split():
        tensors[name].requires_grad_()
    loss = linear_caref_loss(**tensors, labels=torch.arange(6), reduction=reduction, fused="chunked")
    loss.sum().backward()
    assert [name for name, each in tensors.items() if each.grad is not None] == needed.split()
    assert spies.weights == ([(9, 3)] if "weight" in needed else [])
    assert ((3, 9) in spies.rows) == ("hidden" in needed)


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode, nullcontext])
def test_no_gradient_where_none_can_be_asked_for(
    context: Callable[[], Any], spies: Spies, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Tensor | None] = []

    def spy(*args: Any, gradient: Tensor | None, **options: Any) -> Tensor:
        asked.append(gradient)
        return kernel(*args, gradient=gradient, **options)

    kernel = chunked.row_terms
    monkeypatch.setattr(chunked, "row_terms", spy)
    leaves = torch.randn(6, 9), torch.randn(6, 3), torch.randn(9, 3)
    if context is not nullcontext:
        leaves = tuple(each.requires_grad_() for each in leaves)
    logits, hidden, weight = leaves
    with context():
        assert not caref_loss(logits, torch.arange(6), fused="chunked").requires_grad
        assert not linear_caref_loss(hidden, weight, torch.arange(6), fused="chunked").requires_grad
    assert asked == [None, None]
    assert spies.weights == []
    assert spies.rows == {(9, 3): [6]}


class LargestTensor(TorchDispatchMode):
    """Notes how many values the largest tensor had that any operation gave."""

    values = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **(kwargs or {}))
        for each in made if isinstance(made, tuple | list) else [made]:
            if isinstance(each, Tensor):
                self.values = max(self.values, each.untyped_storage().nbytes() // each.element_size())
        return made


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("frozen", [False, True])
def test_the_logits_never_exist_as_a_whole(frozen: bool, reduction: str) -> None:
    rows, vocab, size, chunk = 200, 500, 8, 16
    hidden, weight = torch.randn(rows, size), torch.randn(vocab, size)
    labels = torch.randint(0, vocab, (rows,))
    leaves = [hidden.requires_grad_(), weight.requires_grad_(not frozen)]
    options = {"reduction": reduction}
    with blocks(1), LargestTensor() as fused:
        value = linear_caref_loss(*leaves, labels, memory_mib=1e-6, fused="chunked", **options)
        value.sum().backward()
    with LargestTensor() as eager:
        eager_loss(F.linear(*leaves), labels, **options).sum().backward()
    assert eager.values >= rows * vocab
    # Neither do the gradients of hidden states and weight need more than a chunk's logits.
    assert max(rows * size, vocab * size) < chunk * vocab
    assert fused.values == chunk * vocab


def test_the_gradient_is_all_of_the_size_of_logits_that_is_kept() -> None:
    logits, labels = torch.randn(64, 50).requires_grad_(), torch.randint(0, 50, (64,))
    kept: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        caref_loss(logits, labels, fused="chunked")
    assert [tuple(each.shape) for each in kept] == [(64, 50)]


@pytest.mark.parametrize("by", ["labels", "mask"])
def test_only_what_counts_goes_through_the_head(by: str, spies: Spies) -> None:
    hidden, weight = torch.randn(10, 12, 3).requires_grad_(), torch.randn(9, 3)
    labels, ignored = torch.randint(0, 9, (10, 12)), torch.rand(10, 12) < 0.4
    options = {"labels": labels.masked_fill(ignored, -100)}
    if by == "mask":
        options = {"labels": labels, "mask": ~ignored}
    counted = int((~ignored).sum())
    linear_caref_loss(hidden, weight, memory_mib=1e-6, fused="chunked", **options).backward()
    assert sum(spies.rows[(9, 3)]) == sum(spies.rows[(3, 9)]) == counted
    assert len(spies.rows[(9, 3)]) == -(-counted // 16)


# --- autocast ---------------------------------------------------------------------------------------


def test_autocast_leaves_logits_and_their_sums_alone() -> None:
    logits, labels, one = torch.randn(20, 50), torch.randint(0, 50, (20,)), torch.tensor(1.0)

    def loss(x: Tensor) -> Tensor:
        return caref_loss(x, labels, fused="chunked")

    expected = outcome(loss, [logits], one)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = outcome(loss, [logits], one)
    assert all(torch.equal(each, right) for each, right in zip(found, expected, strict=True))


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_autocast_of_a_head(with_bias: bool, reduction: str) -> None:
    leaves = [torch.randn(40, 16), torch.randn(60, 16) / 4, *([torch.randn(60)] if with_bias else [])]
    labels, upstream = torch.randint(0, 60, (40,)), torch.rand(40 if reduction == "none" else ())
    options = {"reduction": reduction, "lambda_sced": 0.5}

    def fused(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return linear_caref_loss(hidden, weight, labels, bias=bias, fused="chunked", **options)

    def eager(*tensors: Tensor) -> Tensor:
        return eager_loss(F.linear(*tensors), labels, **options)

    exact = outcome(eager, cast(leaves, FLOAT64), upstream)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, same = outcome(fused, leaves, upstream), outcome(eager, leaves, upstream)
    assert found[0].dtype == torch.float32
    assert_no_worse(found, same, exact, torch.bfloat16, 1)


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_autocast_leaves_what_was_promised_before_it_alone() -> None:
    hidden, weight, labels = torch.randn(20, 8), torch.randn(50, 8), torch.randint(0, 50, (20,))
    promise = DeferredLogits.promise(hidden, weight)
    # PyTorch's own product is the one that autocast acts upon.
    with torch.backends.mkldnn.flags(enabled=False):
        expected = caref_loss(promise, labels, fused="chunked")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(caref_loss(promise, labels, fused="chunked"), expected)


def test_autocast_takes_a_head_of_another_dtype() -> None:
    hidden, weight = torch.randn(4, 3).bfloat16(), torch.randn(9, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = linear_caref_loss(hidden, weight, torch.arange(4), fused="chunked")
    torch.testing.assert_close(found, eager_loss(hidden @ weight.bfloat16().T, torch.arange(4)))


# --- errors -----------------------------------------------------------------------------------------


def of_head(**changed: Any) -> Tensor:
    given = {"hidden": torch.zeros(2, 3), "weight": torch.zeros(5, 3), "labels": torch.tensor([1, 4])}
    return linear_caref_loss(**{**given, "fused": "chunked", **changed})


def of_logits(**changed: Any) -> Tensor:
    given = {"logits": torch.zeros(2, 5), "labels": torch.tensor([1, 4]), "fused": "chunked"}
    return caref_loss(**{**given, **changed})


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        (
            {"weight": torch.zeros(5, 4)},
            ValueError,
            r"weight must have shape \(vocab, hidden\) with the last axis of hidden, "
            r"got \(5, 4\) for hidden of shape \(2, 3\)",
        ),
        ({"weight": torch.zeros(3)}, ValueError, r"got \(3,\) for hidden of shape \(2, 3\)"),
        ({"hidden": torch.tensor(1.0)}, ValueError, r"got \(5, 3\) for hidden of shape \(\)"),
        ({"bias": torch.zeros(4)}, ValueError, r"bias must have shape \(5,\), got \(4,\)"),
        ({"bias": torch.zeros(5, 1)}, ValueError, r"bias must have shape \(5,\), got \(5, 1\)"),
        (
            {"weight": torch.zeros(5, 3, dtype=FLOAT64)},
            TypeError,
            "hidden, weight and bias must have one dtype, got .*torch.float(32|64), torch.float(32|64)",
        ),
        ({"bias": torch.zeros(5).half()}, TypeError, "hidden, weight and bias must have one dtype"),
        ({"softcap": 0.0}, ValueError, "softcap must be above 0 and finite, or None, got 0.0"),
        ({"softcap": -1.0}, ValueError, "softcap must be above 0 and finite, or None, got -1.0"),
        ({"softcap": INF}, ValueError, "softcap must be above 0 and finite, or None, got inf"),
        ({"softcap": NAN}, ValueError, "softcap must be above 0 and finite, or None, got nan"),
        ({"memory_mib": 0.0}, ValueError, "memory_mib must be above 0, got 0.0"),
        ({"memory_mib": -2}, ValueError, "memory_mib must be above 0, got -2"),
        (
            {"hidden": torch.zeros(2, 3).long(), "weight": torch.zeros(5, 3).long()},
            TypeError,
            "logits must be",
        ),
    ],
)
def test_what_a_head_must_be(changed: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        of_head(**changed)


@pytest.mark.parametrize("loss", [of_logits, of_head])
@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        (
            {"labels": torch.tensor([1, 5])},
            ValueError,
            r"labels must lie in \[0, 5\) or be ignore_index \(-100\), got 5",
        ),
        ({"labels": torch.tensor([1, -1])}, ValueError, "or be ignore_index .*, got -1"),
        ({"labels": torch.tensor([1])}, ValueError, r"labels must have shape \(2,\), .* got \(1,\)"),
        ({"labels": torch.tensor([1, 2]).int()}, TypeError, "labels must be int64, got torch.int32"),
        ({"mask": torch.ones(2)}, TypeError, "mask must be bool, got torch.float32"),
        (
            {"penalty_mask": torch.ones(3, dtype=torch.bool)},
            ValueError,
            r"penalty_mask must have shape \(2,\), .* got \(3,\)",
        ),
        ({"reduction": "avg"}, ValueError, "reduction must be one of 'mean', 'sum', 'none', got 'avg'"),
        ({"alpha": 0.9}, ValueError, "alpha must be a finite number of at least 1, got 0.9"),
        ({"beta": -1}, ValueError, "beta must be a finite number of at least 0, got -1"),
        ({"lambda_sced": -0.1}, ValueError, "lambda_sced must be a finite number of at least 0, got -0.1"),
        ({"lambda_kl": INF}, ValueError, "lambda_kl must be a finite number of at least 0, got inf"),
        ({"normalize": "yes"}, ValueError, "normalize must be one of None, 'log_vocab', got 'yes'"),
        (
            {"fused": "off"},
            ValueError,
            "fused must be one of 'auto', 'chunked', 'compiled', 'triton', got 'off'",
        ),
        ({"fused": "cuda"}, ValueError, "fused must be one of .* got 'cuda'"),
    ],
)
def test_settings_out_of_range(
    loss: Callable[..., Tensor], changed: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        loss(**changed)


def test_a_vocabulary_of_nothing() -> None:
    with pytest.raises(ValueError, match=r"logits must have shape \(\.\.\., vocab\) with vocab > 0"):
        of_head(weight=torch.zeros(0, 3))


@pytest.mark.parametrize("loss", [of_logits, of_head])
@pytest.mark.parametrize("installed", [False, True])
def test_triton_where_it_cannot_run(
    loss: Callable[..., Tensor], installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "_has_triton", lambda: installed)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    why = "the device is cpu, and TRITON_INTERPRET=1 is not set" if installed else "Triton is not installed"
    with pytest.raises(ValueError, match=f"the Triton kernel cannot run here: {why}.*; fused='auto' takes"):
        loss(fused="triton")
    assert loss(fused="auto").item() == loss().item()


def test_triton_has_no_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_has_triton", lambda: True)
    with pytest.raises(ValueError, match="it computes in float32, and the logits are float64"):
        of_logits(logits=torch.zeros(2, 5, dtype=FLOAT64), fused="triton")


# --- as torch.compile makes it ----------------------------------------------------------------------

needs_compiler = pytest.mark.skipif(
    not any(shutil.which(name) for name in ("c++", "g++", "clang++", "cl")),
    reason="torch.compile needs a C++ compiler",
)


@pytest.fixture
def afresh() -> None:
    """After some variants torch.compile gives a function up, and runs it as it is."""
    torch._dynamo.reset()
    _compiled.cache_clear()


@pytest.mark.usefixtures("afresh")
@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "beta", "softcap"), [(2.0, 1.0, None), (2.0, 1.0, 2.0), (1.5, 0.5, None), (1.0, 0.0, None)]
)
def test_compiled(alpha: float, beta: float, softcap: float | None) -> None:
    @settings(max_examples=10, deadline=None, derandomize=True)
    @given(head_cases(), st.sampled_from([None, "log_vocab"]))
    def check(head: HeadCase, normalize: str | None) -> None:
        case = head.case
        case.options |= {"alpha": alpha, "beta": beta, "normalize": normalize}
        head.head["softcap"] = softcap
        if softcap is None:
            assert_same(
                outcome(fused_of_logits(case, "compiled"), [case.logits], case.upstream),
                outcome(eager_of_logits(case), [case.logits], case.upstream),
            )
        assert_same(
            outcome(fused_of_head(head, "compiled"), head.leaves, case.upstream),
            outcome(eager_of_head(head), head.leaves, case.upstream),
        )

    check()


@pytest.mark.usefixtures("afresh")
@needs_compiler
@pytest.mark.slow
def test_each_of_many_formulas_is_compiled() -> None:
    """A search over exponents has more than torch.compile makes of one function; it would say so."""
    logits, labels = torch.randn(30, 200), torch.randint(0, 200, (30,))
    for alpha in (1.1, 1.2, 1.3, 1.4, 1.6, 1.7, 1.8, 1.9, 2.1, 2.2):
        for rows in (30, 20, 10):
            part = logits[:rows], labels[:rows]
            found = caref_loss(*part, alpha=alpha, fused="compiled")
            torch.testing.assert_close(found, eager_loss(*part, alpha=alpha))


@pytest.mark.usefixtures("afresh")
@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
def test_compiled_no_less_exact_than_eager(dtype: torch.dtype) -> None:
    logits, labels = (3 * torch.randn(30, 200)).to(dtype), torch.randint(0, 200, (30,))
    labels[::4] = -100
    one = torch.tensor(1.0)
    eager = outcome(lambda x: eager_loss(x, labels), [logits], one)
    exact = outcome(lambda x: eager_loss(x, labels), [logits.double()], one)
    found = outcome(lambda x: caref_loss(x, labels, fused="compiled"), [logits], one)
    assert_no_worse(found, eager, exact, dtype, 16 if dtype == torch.float32 else 2)


@pytest.mark.usefixtures("afresh")
@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [FLOAT64, torch.float32, *HALVES])
def test_compiled_special_rows(dtype: torch.dtype) -> None:
    labels = torch.zeros(len(EXTREME), dtype=torch.int64)
    check_special_rows(torch.tensor(EXTREME, dtype=dtype), labels, beta=0.5, fused="compiled")


@pytest.mark.usefixtures("afresh")
@needs_compiler
@pytest.mark.slow
def test_compiled_ignores_what_is_ignored() -> None:
    logits, labels, one = torch.randn(4, 9), torch.tensor([1, -100, 2, -100]), torch.tensor(1.0)

    def loss(filler: float) -> list[Tensor]:
        given = logits.masked_fill((labels < 0).unsqueeze(1), filler)
        return outcome(lambda x: caref_loss(x, labels, fused="compiled"), [given], one)

    for bad in (NAN, INF):
        assert all(torch.equal(each, right) for each, right in zip(loss(bad), loss(0.0), strict=True))
