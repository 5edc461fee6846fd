"""From logits to the loss: one pass over them makes the value and the gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from caref.kernels.rows import RowKernel
from caref.kernels.work import Work, refuse_second_derivative, times


def through_logits(logits: Tensor, work: Work, kernel: RowKernel) -> tuple[Tensor, Tensor]:
    """The loss of logits that exist.

    Their gradient is made on the way, and kept until the backward pass: it is as large as they are, and is
    the only thing of that size.

    Args:
        logits: Shape ``(rows, vocab)``. They stay as they are.
        work: What is computed. What ignored rows hold does not matter.
        kernel: What computes it.

    Returns:
        The loss, a scalar or per row; and cross-entropy, SCED and KL of every row, unweighted and without
        gradient, shape ``(3, rows)``.
    """
    return _ThroughLogits.apply(logits, work, kernel)


class _ThroughLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, work: Work, kernel: RowKernel) -> tuple[Tensor, Tensor]:
        gradient = torch.empty_like(logits) if work.differentiable and ctx.needs_input_grad[0] else None
        # Divided by the positions, float16 would lose small numbers before a scaled loss can save them.
        ctx.scaled_later = not work.per_row and logits.dtype == torch.float16
        terms = kernel(
            logits,
            work.labels,
            work.penalties,
            penalised=work.penalised,
            gradient=gradient,
            scale=1.0 if work.per_row or ctx.scaled_later else work.scale,
        )
        ctx.work = work
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(terms)
        return work.value(terms), terms

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative()
        work: Work = ctx.work
        (gradient,) = ctx.saved_tensors
        if work.per_row:
            upstream = upstream.masked_fill(work.labels < 0, 0.0).unsqueeze(1)
        elif ctx.scaled_later:
            upstream = upstream * work.scale
        return times(gradient, upstream), None, None
