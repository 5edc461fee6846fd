"""The row kernel in plain PyTorch, for any device: a few rows at a time, so that they stay in the cache."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from caref.kernels.rows import LOWEST
from caref.losses.penalties import Penalties

# PyTorch shares an elementwise operation among threads in pieces of at least this many values.
_GRAIN = 32768


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
    """See `caref.kernels.rows.RowKernel`. On an accelerator it waits for the device."""
    rows, vocab = scores.shape
    dtype = torch.promote_types(scores.dtype, torch.float32)
    scale = float(scale)
    counted = (labels >= 0).nonzero().squeeze(1)
    whole = len(counted) == rows
    direct = whole and gradient is not None and gradient.dtype == dtype
    terms = torch.zeros(3, rows, dtype=dtype, device=scores.device)
    step = max(1, min(rows, _block_values(scores.device) // vocab))
    rooms = torch.empty(5, step, vocab, dtype=dtype, device=scores.device)
    for start in range(0, len(counted), step):
        stop = min(start + step, len(counted))
        where: slice | Tensor = slice(start, stop) if whole else counted[start:stop]
        room = rooms[:, : stop - start]
        out = None if gradient is None else gradient[where] if direct else room[1]
        terms[:, where] = _block(
            # Not scores[tensor], which copies by one thread.
            (scores[where] if isinstance(where, slice) else scores.index_select(0, where)).to(dtype),
            labels[where],
            penalties,
            softcap,
            None if penalised is None else penalised[where].to(dtype),
            room,
            scale,
            out,
        )
        if gradient is not None and out is not None and not direct:
            gradient[where] = out.to(gradient.dtype)
    if gradient is not None and not whole:
        gradient[labels < 0] = 0.0
    return terms


def _block_values(device: torch.device) -> int:
    """Values of a block: work for every thread, and five times as many still fit into a shared cache."""
    return max(1 << 18, _GRAIN * torch.get_num_threads()) if device.type == "cpu" else 1 << 26


def _block(
    scores: Tensor,
    labels: Tensor,
    penalties: Penalties,
    softcap: float | None,
    penalised: Tensor | None,
    room: Tensor,
    scale: float,
    out: Tensor | None,
) -> Tensor:
    """The terms of a few rows; the gradient in `out`, which may be `scores`. `room` holds what lies between.

    With ``L = log P + log V``, ``a`` and ``b`` the weights, the gradient on logit j is
    ``P_j (1 + A_j - sum_v P_v A_v) - [j = label]`` where ``A = a dSCED/dP + b L``.
    """
    vocab = scores.shape[-1]
    if softcap is not None:
        tanh = torch.tanh(scores / softcap)
        scores = tanh * softcap
    terms = scores.new_zeros(3, len(scores))
    log_p = torch.log_softmax(scores, -1, out=room[0])
    terms[0] = -log_p.gather(1, labels.unsqueeze(1)).squeeze(1)
    p = torch.exp(log_p, out=room[1])
    if penalties.sced is not None or penalties.kl is not None:
        # expm1: 1 - P without cancellation near P = 1.
        rest = torch.expm1(log_p, out=room[2]).neg_() if penalties.sced is not None else None
        bracket = log_p.clamp_(min=LOWEST).add_(math.log(vocab))
        q = torch.mul(p, bracket, out=room[3])
        if penalties.kl is not None:
            terms[2] = q.sum(-1)
        if rest is not None:
            unit = penalties.sced_unit(vocab)
            value, by_p = _sced(q, bracket, rest, penalties, room[4])
            terms[1] = value / unit
            weight = scale * (penalties.sced or 0.0) / unit
        if penalised is not None:
            terms[1:] *= penalised
    if out is None:
        return terms
    slope = None
    if penalties.kl is not None:
        bracket.mul_(scale * penalties.kl)
        slope = bracket.add_(by_p, alpha=weight) if penalties.sced is not None else bracket
    elif penalties.sced is not None:
        slope = by_p.mul_(weight)
    if slope is None:
        torch.mul(p, scale, out=out)
    else:
        if penalised is not None:
            slope.mul_(penalised.unsqueeze(1))
        # Not a dot product: that adds one value after the other, and loses the small ones.
        mean = torch.mul(p, slope, out=room[4]).sum(-1, keepdim=True)
        torch.mul(slope.sub_(mean.sub_(scale)), p, out=out)
    out.scatter_add_(1, labels.unsqueeze(1), out.new_full((len(out), 1), -scale))
    if softcap is not None:
        out.mul_(tanh.square_().neg_().add_(1.0))
    return terms


def _sced(
    q: Tensor, bracket: Tensor, rest: Tensor, penalties: Penalties, room: Tensor
) -> tuple[Tensor, Tensor]:
    """``sum_v |q|^alpha (1 - P)^beta``, shape ``(rows,)``, and its derivative by P, shape of `q`.

    The derivative is ``alpha |q|^(alpha-1) sign(q) (L + 1) (1-P)^beta - beta |q|^alpha (1-P)^(beta-1)``.
    `q` and `rest` are overwritten.
    """
    alpha, beta = penalties.alpha, penalties.beta
    if alpha == 2:
        size, by_q = torch.mul(q, q, out=room), q.mul_(2.0)
    elif alpha == 1:
        size, by_q = torch.abs(q, out=room), q.sign_()
    else:
        size = torch.abs(q, out=room)
        power = size.pow(alpha - 1)
        size.mul_(power)
        by_q = q.sign_().mul_(power.mul_(alpha))
    by_p = by_q.addcmul_(by_q, bracket)
    if beta == 0:
        return size.sum(-1), by_p
    if beta == 1:
        by_p.mul_(rest).sub_(size)
        return size.mul_(rest).sum(-1), by_p
    if beta == 2:
        size.mul_(rest)
        by_p.mul_(rest).mul_(rest).sub_(size, alpha=2.0)
        return size.mul_(rest).sum(-1), by_p
    size.mul_(rest.pow(beta))
    by_p.mul_(rest.pow(beta))
    # For beta < 1 the derivative is infinite at P = 1; what reaches the logit tends to 0.
    return size.sum(-1), by_p.sub_((size / rest).masked_fill_(rest == 0, 0.0), alpha=beta)
