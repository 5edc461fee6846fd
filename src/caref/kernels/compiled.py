"""The row kernel as torch.compile makes it of the formula: faster on a CPU, after seconds of compiling."""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable

import torch
from torch import Tensor

from caref.kernels.rows import LOWEST
from caref.losses.penalties import Penalties


def row_terms(
    scores: Tensor,
    labels: Tensor,
    penalties: Penalties,
    *,
    softcap: float | None = None,
    penalised: Tensor | None = None,
    gradient: Tensor | None = None,
    scale: float | Tensor = 1.0,
) -> Tensor:
    """See `caref.kernels.rows.RowKernel`. It needs what torch.compile needs, on a CPU a C++ compiler."""
    dtype = torch.promote_types(scores.dtype, torch.float32)
    counted = labels >= 0
    safe = labels.clamp(min=0).unsqueeze(1)
    # Numbers that change from call to call are tensors: they are no reason to compile anew.
    numbers = torch.tensor([penalties.sced or 0.0, penalties.kl or 0.0], dtype=dtype, device=scores.device)
    rows = counted.to(dtype) * scale
    where = counted if penalised is None else counted & penalised
    if softcap is None:
        pull = rows
    else:
        own = scores.gather(1, safe).squeeze(1).masked_fill(~counted, 0.0)
        pull = rows * (1 - (own.to(dtype) / softcap).tanh().square())
    exponents = penalties._replace(sced=None, kl=None)
    # The compiler makes variants of its own for these, and only a few of one function.
    alike = (scores.dtype, gradient is None, gradient is scores, *(size == 1 for size in scores.shape))
    formula = _compiled(exponents, penalties.names, softcap, alike)
    terms = formula(scores, safe, counted, numbers, rows, where.to(dtype), gradient)
    if gradient is not None:
        gradient.scatter_add_(1, safe, -pull.unsqueeze(1).to(gradient.dtype))
    return torch.stack([terms[0] * counted, *terms[1:]])


Formula = Callable[
    [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor, Tensor]
]


@functools.cache
def _compiled(
    exponents: Penalties, names: tuple[str, ...], softcap: float | None, alike: tuple[object, ...]
) -> Formula:
    """The formula of these exponents and terms, compiled once for inputs that are alike."""

    def formula(
        scores: Tensor,
        labels: Tensor,
        counted: Tensor,
        numbers: Tensor,
        rows: Tensor,
        where: Tensor,
        out: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        vocab = scores.shape[-1]
        # 0 times what an ignored row holds would be NaN where that is infinite.
        scores = scores.to(numbers.dtype).masked_fill(~counted.unsqueeze(1), 0.0)
        tanh = None if softcap is None else torch.tanh(scores / softcap)
        log_p = torch.log_softmax(scores if tanh is None or softcap is None else tanh * softcap, -1)
        ce = -log_p.gather(1, labels).squeeze(1)
        log_p = log_p.clamp(min=LOWEST)
        p, bracket = log_p.exp(), log_p + math.log(vocab)
        q = p * bracket
        kl = sced = torch.zeros_like(ce)
        slope = torch.ones_like(p)
        if "kl" in names:
            kl = q.sum(-1) * where
            slope = slope + (numbers[1] * where).unsqueeze(1) * bracket
        if "sced" in names:
            value, by_p = _sced(q, bracket, -torch.expm1(log_p), exponents.alpha, exponents.beta)
            unit = exponents.sced_unit(vocab)
            sced = value * where / unit
            slope = slope + (numbers[0] / unit * where).unsqueeze(1) * by_p
        if out is not None:
            mean = (p * slope).sum(-1, keepdim=True)
            by_score = p * (slope - mean + 1) * rows.unsqueeze(1)
            out.copy_(by_score if tanh is None else by_score * (1 - tanh * tanh))
        return ce, sced, kl

    # The compiler counts what it made of one code object and gives up at a few: every formula has its own.
    # Should it give up nevertheless, fullgraph makes that an error.
    own = types.FunctionType(formula.__code__.replace(), globals(), closure=formula.__closure__)
    return torch.compile(own, dynamic=True, fullgraph=True)


def _sced(q: Tensor, bracket: Tensor, rest: Tensor, alpha: float, beta: float) -> tuple[Tensor, Tensor]:
    """``sum_v |q|^alpha (1 - P)^beta``, shape ``(rows,)``, and its derivative by P, shape of `q`."""
    if alpha == 2:
        size, by_q = q * q, 2 * q
    elif alpha == 1:
        size, by_q = q.abs(), q.sign()
    else:
        power = q.abs().pow(alpha - 1)
        size, by_q = power * q.abs(), alpha * power * q.sign()
    by_p = by_q * (1 + bracket)
    if beta == 0:
        return size.sum(-1), by_p
    if beta == 1:
        return (size * rest).sum(-1), by_p * rest - size
    if beta == 2:
        return (size * rest * rest).sum(-1), (by_p * rest - 2 * size) * rest
    left = rest.pow(beta)
    # For beta < 1 the derivative is infinite at P = 1; what reaches the logit tends to 0.
    by_rest = torch.where(rest > 0, beta * size * left / rest.clamp(min=torch.finfo(rest.dtype).tiny), 0.0)
    return (size * left).sum(-1), by_p * left - by_rest
