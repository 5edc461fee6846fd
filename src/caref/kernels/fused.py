"""The fused loss: what is checked, chosen and reduced around the kernels."""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple, get_args

import torch
from torch import Tensor

from caref.kernels.backends import choose_backend, row_kernel
from caref.kernels.chunks import rows_per_chunk
from caref.kernels.deferred import DeferredLogits
from caref.kernels.rows import IGNORED, RowKernel
from caref.kernels.through_head import through_head
from caref.kernels.through_logits import through_logits
from caref.kernels.work import Work
from caref.losses.penalties import Penalties
from caref.losses.reduction import Reduction, check_choice, mean_divisor, which_count


class FusedLoss(NamedTuple):
    """What a fused loss gives."""

    value: Tensor
    """The loss: a scalar, or one value per position for reduction ``"none"``."""
    sums: dict[str, Tensor]
    """Each term's sum over the positions that count, unweighted and without gradient."""
    positions: Tensor
    """How many positions count."""
    ran: str
    """The backend that computed it, with ``", from hidden states"`` where no logits were made."""


def fused_loss(
    logits: Tensor | DeferredLogits,
    labels: Tensor,
    penalties: Penalties,
    *,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    mask: Tensor | None = None,
    penalty_mask: Tensor | None = None,
    num_items_in_batch: int | Tensor | None = None,
    backend: str = "auto",
    memory_mib: float | None = None,
) -> FusedLoss:
    """Cross-entropy and penalties, of logits or of what would make them.

    The options but for the last two are those of `caref.losses.caref_loss`.

    Args:
        logits: Shape ``(..., vocab)``, any float dtype. Promised ones are computed by the chunk, and only
            where they count; on an accelerator their number is waited for.
        labels: Shape ``(...)``, int64.
        penalties: The terms beside cross-entropy.
        ignore_index: The label of padding and prompt positions.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        mask: Further limits the positions that count.
        penalty_mask: Limits the penalties.
        num_items_in_batch: What ``"mean"`` divides by.
        backend: ``"auto"``, ``"chunked"``, ``"compiled"`` or ``"triton"``.
        memory_mib: Budget for a chunk of promised logits, in MiB; by default chosen from the shape.

    Raises:
        TypeError: If a dtype is wrong.
        ValueError: If the shapes disagree, a label lies outside the vocabulary, or the backend cannot run.
    """
    check_choice("reduction", reduction, get_args(Reduction))
    keep = which_count(logits, labels, ignore_index, mask, penalty_mask)
    work = Work(
        labels=labels.masked_fill(~keep, IGNORED).flatten(),
        penalised=None if penalty_mask is None else penalty_mask.flatten(),
        penalties=penalties,
        scale=_scale(reduction, keep, num_items_in_batch),
        per_row=reduction == "none",
        differentiable=torch.is_grad_enabled(),
    )
    ran, device = choose_backend(logits.device, logits.dtype, backend), logits.device.type
    kernel = row_kernel(ran)
    with torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext():
        if isinstance(logits, DeferredLogits):
            value, terms = _of_promised(logits, work, kernel, memory_mib)
        else:
            value, terms = through_logits(logits.reshape(-1, logits.shape[-1]), work, kernel)
    sums = dict(zip(("ce", "sced", "kl"), terms.sum(1), strict=True))
    return FusedLoss(
        value=value.view(labels.shape) if work.per_row else value,
        sums={name: sums[name] for name in penalties.names},
        positions=keep.sum(),
        ran=f"{ran}, from hidden states" if isinstance(logits, DeferredLogits) else ran,
    )


def _of_promised(
    logits: DeferredLogits, work: Work, kernel: RowKernel, memory_mib: float | None
) -> tuple[Tensor, Tensor]:
    """The loss and its terms of the positions that count, the only ones whose logits are computed."""
    hidden, head = logits.rows()
    where = (work.labels >= 0).nonzero().squeeze(1)
    rows, some = len(hidden), len(where) < len(hidden)
    if some:
        hidden, work = hidden.index_select(0, where), work.of_rows(where)
    chunk = rows_per_chunk(
        len(hidden),
        hidden.shape[1],
        len(head.weight),
        itemsize=hidden.element_size(),
        device=hidden.device,
        memory_mib=memory_mib,
    )
    value, terms = through_head(hidden, head, work, kernel, chunk=chunk)
    if work.per_row and some:
        value = value.new_zeros(rows).index_copy(0, where, value)
    return value, terms


def _scale(reduction: Reduction, keep: Tensor, num_items_in_batch: int | Tensor | None) -> float | Tensor:
    """What the sum is multiplied by; a number where that needs no waiting for a device."""
    if reduction != "mean":
        return 1.0
    divisor = mean_divisor(keep, num_items_in_batch)
    return 1.0 / (divisor.item() if isinstance(divisor, Tensor) and divisor.device.type == "cpu" else divisor)
