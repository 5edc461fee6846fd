"""The row kernel in Triton, for GPUs: one program per row, which reads its logits two or three times.

The size of a block and the warps that share it are chosen by trying a few the first time that a kind of row
is met, and kept for the process. How a row's sum is split follows from them, and with it the last bits of the
result; two processes may choose differently. With ``CAREF_TRITON_AUTOTUNE=0`` in the environment nothing is
tried and the same input gives the same bits in every process.

With ``TRITON_INTERPRET=1``, set before this module is imported, Triton runs the kernel on the CPU: slow, for
tests, and never tuned.
"""

# What is typed is the function that others call: inside a kernel types are Triton's.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False

from __future__ import annotations

import math
import os
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from caref.kernels.rows import LOWEST
from caref.losses.penalties import Penalties

_LOWEST = tl.constexpr(LOWEST)
_FLOAT32_MIN = tl.constexpr(torch.finfo(torch.float32).min)


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
    """See `caref.kernels.rows.RowKernel`; not for float64. It never waits for the device, but to tune."""
    rows, vocab = scores.shape
    terms = torch.empty(3, rows, dtype=torch.float32, device=scores.device)
    if rows == 0:
        return terms
    # Along a row the kernel counts by one. Logits that lie otherwise are rare enough to be copied.
    lying = scores if scores.stride(1) == 1 else scores.contiguous()
    out = gradient if gradient is None or gradient.stride(1) == 1 else torch.empty_like(lying)
    unit = penalties.sced_unit(vocab)
    with torch.cuda.device_of(scores):
        _launcher(lying, out)[(rows,)](
            lying,
            lying.stride(0),
            out,
            0 if out is None else out.stride(0),
            labels.contiguous(),
            None if penalised is None else penalised.contiguous().view(torch.uint8),
            terms,
            scale.to(scores.device, torch.float32) if isinstance(scale, Tensor) else scale,
            softcap,
            (penalties.sced or 0.0) / unit,
            penalties.kl or 0.0,
            1.0 / unit,
            math.log(vocab),
            rows,
            vocab,
            triton.next_power_of_2(vocab),
            scale_at_pointer=isinstance(scale, Tensor),
            with_sced=penalties.sced is not None,
            with_kl=penalties.kl is not None,
            alpha=float(penalties.alpha),
            beta=float(penalties.beta),
        )
    if gradient is not None and out is not None and out is not gradient:
        gradient.copy_(out)
    return terms


# What changes from step to step is a plain argument, of which Triton compiles no variants: weights that warm
# up, the number of rows. The exponents are constants, so that the common ones need no powers.
@triton.jit(do_not_specialize=["rows", "bucket"])
def _row(
    scores,
    scores_stride,
    gradient,
    gradient_stride,
    labels,
    penalised,
    terms,
    scale,
    softcap,
    by_sced,
    by_kl,
    per_unit,
    log_vocab,
    rows,
    vocab,
    bucket,
    scale_at_pointer: tl.constexpr,
    with_sced: tl.constexpr,
    with_kl: tl.constexpr,
    alpha: tl.constexpr,
    beta: tl.constexpr,
    block: tl.constexpr,
):
    """Terms and gradient of one row; `gradient`, `penalised` and `softcap` may be None.

    With ``L = log P + log V``, the gradient on logit j is ``P_j (1 + A_j - sum_v P_v A_v) - [j = label]``
    where ``A = by_sced dSCED/dP + by_kl L``.
    """
    # int64: a row may begin more than 2**31 values after the first.
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    scores += row * scores_stride
    terms += row
    lanes = tl.arange(0, block)
    if gradient is not None:
        gradient += row * gradient_stride
    if label < 0:
        for term in tl.static_range(3):
            tl.store(terms + term * rows, 0.0)
        if gradient is not None:
            for start in range(0, vocab, block):
                tl.store(gradient + start + lanes, tl.zeros([block], tl.float32), mask=start + lanes < vocab)
        return

    # Threads meet where they sum over lanes. What is read before one of these, as the label's score is here,
    # has been read by all of them when the first writes its part of a gradient that takes the scores' place.
    chosen = _capped(tl.load(scores + label).to(tl.float32), softcap)
    largest, log_total = _normalizer(scores, lanes, vocab, softcap, block)
    # The difference first: a large maximum would swallow the log of the sum.
    tl.store(terms, log_total - (chosen - largest))

    sced = tl.zeros([block], tl.float32)
    kl = tl.zeros([block], tl.float32)
    mean = tl.zeros([block], tl.float32)
    if with_sced or with_kl:
        for start in range(0, vocab, block):
            _, logits = _logits(scores, start + lanes, vocab, softcap)
            log_p, p = _probability(logits, largest, log_total)
            bracket = log_p + log_vocab
            kl += p * bracket
            if with_sced:
                value, by_p = _sced(log_p, p, bracket, alpha, beta)
                sced += value
                mean += p * by_p
    counted = 1.0
    if penalised is not None:
        counted = tl.load(penalised + row).to(tl.float32)
    by_sced *= counted
    by_kl *= counted
    total_kl = tl.sum(kl)
    total_mean = by_sced * tl.sum(mean) + by_kl * total_kl
    tl.store(terms + rows, tl.sum(sced) * per_unit * counted)
    tl.store(terms + 2 * rows, total_kl * counted if with_kl else 0.0)

    if gradient is not None:
        factor = tl.load(scale) if scale_at_pointer else scale
        for start in range(0, vocab, block):
            columns = start + lanes
            raw, logits = _logits(scores, columns, vocab, softcap)
            log_p, p = _probability(logits, largest, log_total)
            slope = 1.0 - total_mean
            if with_kl:
                slope += by_kl * (log_p + log_vocab)
            if with_sced:
                _, by_p = _sced(log_p, p, log_p + log_vocab, alpha, beta)
                slope += by_sced * by_p
            by_logit = p * slope - tl.where(columns == label.to(tl.int32), 1.0, 0.0)
            if softcap is not None:
                by_logit *= _cap_slope(raw, softcap)
            tl.store(gradient + columns, by_logit * factor, mask=columns < vocab)


@triton.jit
def _normalizer(scores, lanes, vocab, softcap, block: tl.constexpr):
    """The largest logit, and the log of the sum of ``exp(logit - largest)``."""
    # Each lane keeps a maximum and a sum of its own, at one exponential per value. It begins at the smallest
    # finite number: from -inf, a token of -inf would be inf - inf away.
    largest = tl.full([block], _FLOAT32_MIN, tl.float32)
    total = tl.zeros([block], tl.float32)
    for start in range(0, vocab, block):
        _, logits = _logits(scores, start + lanes, vocab, softcap)
        rise = logits - largest
        smaller = tl.exp(-tl.abs(rise))
        total = tl.where(rise > 0, total * smaller + 1.0, total + smaller)
        largest = tl.maximum(largest, logits)
    top = tl.max(largest)
    return top, tl.log(tl.sum(total * tl.exp(largest - top)))


@triton.jit
def _logits(scores, columns, vocab, softcap):
    """A block of scores in float32, and its logits: -inf beyond the end of the row."""
    inside = columns < vocab
    raw = tl.load(scores + columns, mask=inside, other=0.0).to(tl.float32)
    return raw, tl.where(inside, _capped(raw, softcap), -float("inf"))


@triton.jit
def _probability(logits, largest, log_total):
    """log P and P."""
    log_p = (logits - largest) - log_total
    # Not a maximum: that would lose a NaN.
    log_p = tl.where(log_p < _LOWEST, _LOWEST, log_p)
    return log_p, tl.exp(log_p)


@triton.jit
def _sced(log_p, p, bracket, alpha: tl.constexpr, beta: tl.constexpr):
    """``|q|^alpha (1 - P)^beta`` and its derivative by P.

    That is ``alpha |q|^(alpha-1) sign(q) (L + 1) (1-P)^beta - beta |q|^alpha (1-P)^(beta-1)``.
    """
    q = p * bracket
    if alpha == 2:
        size, by_q = q * q, 2.0 * q
    else:
        sign = tl.where(q > 0, 1.0, tl.where(q < 0, -1.0, 0.0))
        if alpha == 1:
            size, by_q = tl.abs(q), sign
        else:
            power = _power(tl.abs(q), alpha - 1)
            size, by_q = tl.abs(q) * power, alpha * power * sign
    by_p = by_q * (1.0 + bracket)
    if beta == 0:
        value = size
    else:
        rest = _one_minus_exp(log_p)
        if beta == 1:
            value, by_p = size * rest, by_p * rest - size
        elif beta == 2:
            value, by_p = size * rest * rest, (by_p * rest - 2.0 * size) * rest
        else:
            left = _power(rest, beta)
            value = size * left
            # For beta < 1 the derivative is infinite at P = 1; what reaches the logit tends to 0.
            by_p = by_p * left - tl.where(rest > 0, beta * value / tl.where(rest > 0, rest, 1.0), 0.0)
    return value, by_p


@triton.jit
def _power(x, y):
    """``x ** y`` for x >= 0 and y > 0."""
    return tl.where(x > 0, tl.exp(y * tl.log(tl.where(x > 0, x, 1.0))), 0.0)


@triton.jit
def _one_minus_exp(x):
    """``1 - exp(x)`` for x <= 0, to a relative 1e-6."""
    # Near 0 the difference would be what rounding left of it, and expm1 is a function of CUDA's library that
    # the interpreter does not have. Up to 1/4 what follows the first six terms of the series is below 5e-8.
    near = tl.maximum(x, -0.25)
    series = 1 / 24 + near * (1 / 120 + near * (1 / 720))
    series = 1.0 + near * (1 / 2 + near * (1 / 6 + near * series))
    return tl.where(x > -0.25, -x * series, 1.0 - tl.exp(x))


@triton.jit
def _capped(scores, softcap):
    """``softcap * tanh(scores / softcap)``, or the scores."""
    if softcap is not None:
        # tanh |z| = (1 - e) / (1 + e) with e = exp(-2 |z|), which cannot overflow.
        fall = _one_minus_exp(-2.0 * tl.abs(scores) / softcap)
        size = softcap * (fall / (2.0 - fall))
        scores = tl.where(scores < 0, -size, size)
    return scores


@triton.jit
def _cap_slope(scores, softcap):
    """The derivative of `_capped`, ``1 - tanh^2``, without the cancellation."""
    e = tl.exp(-2.0 * tl.abs(scores) / softcap)
    return 4.0 * e / ((1.0 + e) * (1.0 + e))


_BLOCKS = ((1024, 4), (2048, 4), (2048, 8), (4096, 8), (4096, 16), (8192, 16))
_FIXED = triton.Config({"block": 2048}, num_warps=8)
_CANDIDATES = [triton.Config({"block": block}, num_warps=warps) for block, warps in _BLOCKS]
_KEY = ["bucket", "softcap", "with_sced", "with_kl", "alpha", "beta"]
_fixed = triton.autotune([_FIXED], _KEY)(_row)
_tuned = triton.autotune(_CANDIDATES, _KEY)(_row)
# Tuning runs the kernel again and again. Where it overwrites its own input, that is put back each time; where
# it does not, the copy would only cost memory.
_tuned_in_place = triton.autotune(_CANDIDATES, _KEY, restore_value=["gradient"])(_row)


def _launcher(scores: Tensor, gradient: Tensor | None) -> Any:
    """The kernel, with what decides how it is divided."""
    interpreted = not isinstance(_row, triton.JITFunction)
    if interpreted or os.environ.get("CAREF_TRITON_AUTOTUNE") == "0":
        return _fixed
    if gradient is None or gradient.untyped_storage().data_ptr() != scores.untyped_storage().data_ptr():
        return _tuned
    return _tuned_in_place
