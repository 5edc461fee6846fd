"""Calls of the loss of every kind, and how far two of its computations may lie apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

Loss = Callable[..., Tensor]

ALPHAS = st.sampled_from([1.0, 1.5, 2.0, 2.5, 3.0]) | st.floats(1, 4)
BETAS = st.sampled_from([0.0, 0.5, 1.0, 1.7, 2.0]) | st.floats(0, 3)
# With a beta between 0 and 1 the derivative is infinite at P = 1, with alpha = 1 it jumps at P = 1 / V. Near
# these a rounding error of a score may become as large as one likes.
TAME_ALPHAS = st.sampled_from([1.5, 2.0, 2.5, 3.0]) | st.floats(1.5, 4)
TAME_BETAS = st.sampled_from([0.0, 1.0, 1.7, 2.0]) | st.floats(1, 3)
LAMBDAS = st.sampled_from([0.0, 0.01, 0.1, 1.0]) | st.floats(0, 3)
VOCABS = st.sampled_from([1, 2, 300]) | st.integers(1, 300)
POSITIONS = st.one_of(
    st.just(()),
    st.tuples(st.integers(0, 50)),
    st.tuples(st.integers(1, 4), st.integers(1, 12)),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 5)),
)


@dataclass
class Case:
    """A call of the loss: its tensors, and all that is said beside them."""

    logits: Tensor
    labels: Tensor
    options: dict[str, Any]
    upstream: Tensor
    """What reaches the loss from above in the backward pass, of its shape."""


@st.composite
def cases(draw: st.DrawFn, *, tame: bool = False) -> Case:
    """A call on float64 logits."""
    shape, vocab = draw(POSITIONS), draw(VOCABS)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    labels = torch.randint(0, vocab, shape, generator=generator)
    ignore_index = draw(st.sampled_from([-100, -1, 0]))
    labels[torch.rand(shape, generator=generator) < draw(st.sampled_from([0, 0.3, 1]))] = ignore_index
    mask, penalty_mask = (
        draw(st.sampled_from([None, torch.rand(shape, generator=generator) < 0.7])) for _ in range(2)
    )
    reduction = draw(st.sampled_from(["mean", "sum", "none"]))
    upstream = torch.randn(shape if reduction == "none" else (), dtype=torch.float64, generator=generator)
    return Case(
        logits=3 * torch.randn(*shape, vocab, dtype=torch.float64, generator=generator),
        labels=labels,
        options={
            "alpha": draw(TAME_ALPHAS if tame else ALPHAS),
            "beta": draw(TAME_BETAS if tame else BETAS),
            "lambda_sced": draw(LAMBDAS),
            "lambda_kl": draw(LAMBDAS),
            "normalize": draw(st.sampled_from([None, "log_vocab"])),
            "ignore_index": ignore_index,
            "reduction": reduction,
            "mask": mask,
            "penalty_mask": penalty_mask,
            "num_items_in_batch": draw(
                st.sampled_from([None, 0, 7, torch.tensor(7), torch.tensor([3, 4, 5])])
            ),
        },
        upstream=draw(st.sampled_from([upstream, torch.ones_like(upstream)])),
    )


@dataclass
class HeadCase:
    """A call of the loss of a head's logits."""

    case: Case
    hidden: Tensor
    weight: Tensor
    bias: Tensor | None
    head: dict[str, float | None]
    """Scale and softcap."""
    memory_mib: float | None

    @property
    def leaves(self) -> list[Tensor]:
        return [each for each in (self.hidden, self.weight, self.bias) if each is not None]


@st.composite
def head_cases(draw: st.DrawFn, *, tame: bool = False) -> HeadCase:
    """A call on a float64 head whose logits are of a size as a model's."""
    case = draw(cases(tame=tame))
    *shape, vocab = case.logits.shape
    size = draw(st.sampled_from([1, 5, 16]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    return HeadCase(
        case,
        hidden=torch.randn(*shape, size, dtype=torch.float64, generator=generator),
        weight=torch.randn(vocab, size, dtype=torch.float64, generator=generator) * size**-0.5,
        bias=draw(st.sampled_from([None, torch.randn(vocab, dtype=torch.float64, generator=generator)])),
        head={
            "scale": draw(st.sampled_from([1.0, 0.25, 3.0, -1.0])),
            "softcap": draw(st.sampled_from([None, 1.0, 30.0])),
        },
        memory_mib=draw(st.sampled_from([None, 1e-6, 0.02])),
    )


def logits_of_head(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    scale: float = 1.0,
    softcap: float | None = None,
) -> Tensor:
    """What `linear_caref_loss` says that its logits are."""
    scores = hidden @ weight.T
    scores = scale * (scores if bias is None else scores + bias)
    return scores if softcap is None else softcap * torch.tanh(scores / softcap)


def outcome(loss: Loss, leaves: Sequence[Tensor], upstream: Tensor) -> list[Tensor]:
    """The value of a loss, and its gradient on each of its arguments."""
    leaves = [leaf.detach().clone().requires_grad_() for leaf in leaves]
    value = loss(*leaves)
    return [value.detach(), *torch.autograd.grad(value, leaves, upstream.to(value.dtype))]


def cast(case: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
    return [each.to(dtype) for each in case]


def assert_same(found: Sequence[Tensor], expected: Sequence[Tensor], tolerance: float = 1e-9) -> None:
    """Every tensor is another within `tolerance` of the largest number in it.

    One that should be 0 may be off by the rounding errors of numbers near 1.
    """
    assert len(found) == len(expected)
    for each, right in zip(found, expected, strict=True):
        assert each.shape == right.shape
        assert each.dtype == right.dtype
        assert largest(each - right) <= tolerance * max(largest(right), 1e-5)


def assert_no_worse(
    found: Sequence[Tensor],
    eager: Sequence[Tensor],
    exact: Sequence[Tensor],
    dtype: torch.dtype,
    digits: float,
) -> None:
    """No error is larger than that of the eager loss in the same dtype, plus some of its last digits.

    An error is the largest in a tensor, and a last digit that of the largest number in it, or of 1.
    """
    for each, same, right in zip(found, eager, exact, strict=True):
        assert each.shape == same.shape
        assert each.dtype == same.dtype
        assert each.isfinite().all()
        constant = digits * torch.finfo(dtype).eps * max(1.0, largest(right))
        assert largest(each.double() - right) <= largest(same.double() - right) + constant


def largest(tensor: Tensor) -> float:
    return tensor.abs().max().item() if tensor.numel() else 0.0
