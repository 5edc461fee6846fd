"""From hidden states through the output head to the loss, a chunk of logits at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from caref.kernels.deferred import Head
from caref.kernels.products import linear
from caref.kernels.rows import RowKernel
from caref.kernels.work import Work, refuse_second_derivative, times


def through_head(
    hidden: Tensor, head: Head, work: Work, kernel: RowKernel, *, chunk: int
) -> tuple[Tensor, Tensor]:
    """The loss of the logits that `head` would make, of which never more than a chunk exists.

    The gradients are made on the way, while a chunk of logits is at hand, and only those that are needed:
    none of the weight where the head is frozen. Only per row with a trained head are they made in the
    backward pass, from the logits computed once more.

    Args:
        hidden: Shape ``(rows, hidden)``.
        head: Its weights, in the dtype of `hidden`.
        work: What is computed. No row may be ignored.
        kernel: What computes the rows of a chunk.
        chunk: Rows of logits at once.

    Returns:
        The loss, a scalar or per row; and cross-entropy, SCED and KL of every row, unweighted and without
        gradient, shape ``(3, rows)``.
    """
    return _ThroughHead.apply(hidden, head.weight, head.bias, _Rest(head.softcap, work, kernel, chunk))


class _Rest(NamedTuple):
    softcap: float | None
    work: Work
    kernel: RowKernel
    chunk: int


class _ThroughHead(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, rest: _Rest
    ) -> tuple[Tensor, Tensor]:
        work = rest.work
        wanted = _Wanted(*(work.differentiable and needed for needed in ctx.needs_input_grad[:3]))
        ctx.rest, ctx.wanted = rest, wanted
        ctx.later = work.per_row and (wanted.weight or wanted.bias)
        now = _Wanted() if ctx.later else wanted
        terms, gradients = _chunk_by_chunk(hidden, weight, bias, rest, now, work.scale)
        ctx.save_for_backward(*((hidden, weight, bias) if ctx.later else gradients))
        ctx.mark_non_differentiable(terms)
        return work.value(terms), terms

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative()
        work = ctx.rest.work
        factor = upstream.unsqueeze(1) if work.per_row else upstream * work.scale
        if ctx.later:
            hidden, weight, bias = ctx.saved_tensors
            _terms, gradients = _chunk_by_chunk(hidden, weight, bias, ctx.rest, ctx.wanted, factor)
            by_weight, by_bias = gradients.weight, gradients.bias
        else:
            gradients = _Gradients(*ctx.saved_tensors)
            by_weight, by_bias = (each if each is None else times(each, upstream) for each in gradients[1:])
        by_hidden = gradients.hidden if gradients.hidden is None else times(gradients.hidden, factor)
        # What is wider than its input is narrowed by PyTorch.
        return by_hidden, by_weight, by_bias, None


class _Wanted(NamedTuple):
    hidden: bool = False
    weight: bool = False
    bias: bool = False


class _Gradients(NamedTuple):
    hidden: Tensor | None
    """Of each row's own value: shape and dtype of the hidden states."""
    weight: Tensor | None
    """Of the weighted sum over rows, shape of the weight, float32 at least."""
    bias: Tensor | None
    """The same of the bias."""


def _chunk_by_chunk(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    rest: _Rest,
    wanted: _Wanted,
    row_weights: float | Tensor,
) -> tuple[Tensor, _Gradients]:
    """The terms of every row, and the gradients that are wanted.

    `row_weights`, one number or shape ``(rows, 1)``, go into the gradients of weight and bias. These sums
    over rows are kept in float32 at least: that of many chunks in half precision would lose what a single
    product keeps.
    """
    work, rows = rest.work, len(hidden)
    by_row = row_weights if isinstance(row_weights, Tensor) and row_weights.dim() > 0 else None
    summed = torch.promote_types(weight.dtype, torch.float32)
    by_hidden = torch.empty_like(hidden) if wanted.hidden else None
    by_weight = torch.zeros_like(weight, dtype=summed) if wanted.weight else None
    by_bias = torch.zeros_like(weight[:, 0], dtype=summed) if wanted.bias else None
    terms = torch.zeros(3, rows, dtype=summed, device=hidden.device)
    for start in range(0, rows, rest.chunk):
        part = slice(start, start + rest.chunk)
        logits = linear(hidden[part], weight, bias)
        terms[:, part] = rest.kernel(
            logits,
            work.labels[part],
            work.penalties,
            softcap=rest.softcap,
            penalised=None if work.penalised is None else work.penalised[part],
            gradient=logits if any(wanted) else None,
        )
        if by_hidden is not None:
            by_hidden[part] = linear(logits, weight.t())
        here = hidden[part]
        if by_row is not None and (wanted.weight or wanted.bias):
            # What reaches the loss from above may be too large for half precision, or too small.
            logits, here = logits.to(summed) * by_row[part], here.to(summed)
        if by_weight is not None:
            _add_product(by_weight, logits.t(), here)
        if by_bias is not None:
            by_bias += logits.sum(0, dtype=summed)
    if by_row is None:
        for total in (by_weight, by_bias):
            if total is not None:
                total.mul_(row_weights)
    return terms, _Gradients(by_hidden, by_weight, by_bias)


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """``total += left @ right`` where `total` may have a wider dtype."""
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right
