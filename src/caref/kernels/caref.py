"""The CAREF objective, fused: of logits, and of hidden states and the head that makes logits of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from caref.kernels.backends import Backend
from caref.kernels.deferred import DeferredLogits
from caref.kernels.fused import fused_loss
from caref.losses.caref import check_settings
from caref.losses.penalties import Normalize, Penalties
from caref.losses.reduction import Reduction


def caref_loss(
    logits: Tensor | DeferredLogits,
    labels: Tensor,
    *,
    alpha: float = 2.0,
    beta: float = 1.0,
    lambda_sced: float = 0.1,
    lambda_kl: float = 0.1,
    normalize: Normalize | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    mask: Tensor | None = None,
    penalty_mask: Tensor | None = None,
    num_items_in_batch: int | Tensor | None = None,
    fused: Literal["auto", Backend] = "auto",
) -> Tensor:
    """`caref.losses.caref_loss` as one operation with its gradient; arguments and values are the same.

    It differs from the eager function in that there is no second derivative.

    Args:
        logits: Scores, shape ``(..., vocab)``, or the promise of them.
        labels: Target ids, shape ``(...)``, int64.
        alpha: Exponent of a token's share of the divergence, at least 1.
        beta: Exponent of ``1 - P``, at least 0.
        lambda_sced: Weight of SCED, at least 0.
        lambda_kl: Weight of KL, at least 0.
        normalize: ``"log_vocab"`` divides q by ``log V`` in SCED; not in the paper.
        ignore_index: The label of padding and prompt positions.
        reduction: ``"mean"`` over kept positions, ``"sum"`` or ``"none"``.
        mask: Further limits the positions that count, shape ``(...)``, bool.
        penalty_mask: Limits SCED and KL, but not CE, shape ``(...)``, bool.
        num_items_in_batch: What ``"mean"`` divides the sum by, instead of the number of kept positions.
        fused: ``"chunked"`` (PyTorch), ``"compiled"`` (the same by torch.compile) or ``"triton"`` (GPUs);
            ``"auto"`` takes Triton on a GPU where it is installed, else the chunked kernel.

    Returns:
        A scalar, or shape ``(...)`` with 0 at ignored positions for ``"none"``. With no kept position the
        result is 0 and so is its gradient.

    Raises:
        TypeError: If a dtype is wrong.
        ValueError: If the shapes disagree, a label lies outside the vocabulary, a setting is out of range, or
            the kernel asked for cannot run.
        RuntimeError: In a backward pass with ``create_graph=True``.

    Example:
        >>> caref_loss(torch.zeros(1, 2, 4), torch.tensor([[3, -100]]))  # log(4)
        tensor(1.3863)
    """
    check_settings(alpha, beta, lambda_sced, lambda_kl, normalize)
    loss = fused_loss(
        logits,
        labels,
        Penalties(lambda_sced, lambda_kl, alpha, beta, normalize),
        ignore_index=ignore_index,
        reduction=reduction,
        mask=mask,
        penalty_mask=penalty_mask,
        num_items_in_batch=num_items_in_batch,
        backend=fused,
    )
    return loss.value


def linear_caref_loss(
    hidden: Tensor,
    weight: Tensor,
    labels: Tensor,
    *,
    bias: Tensor | None = None,
    scale: float = 1.0,
    softcap: float | None = None,
    alpha: float = 2.0,
    beta: float = 1.0,
    lambda_sced: float = 0.1,
    lambda_kl: float = 0.1,
    normalize: Normalize | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    mask: Tensor | None = None,
    penalty_mask: Tensor | None = None,
    num_items_in_batch: int | Tensor | None = None,
    fused: Literal["auto", Backend] = "auto",
    memory_mib: float | None = None,
) -> Tensor:
    """The CAREF objective of ``softcap(scale * (hidden @ weight.T + bias))``, a chunk of logits at a time.

    Logits are computed for the positions that count alone, and gradients on the way: the weight's and the
    bias's only where they require one.

    Args:
        hidden: The last hidden states, shape ``(..., hidden)``, any float dtype.
        weight: The head's weight, shape ``(vocab, hidden)``, the dtype of `hidden`.
        labels: Target ids, shape ``(...)``, int64.
        bias: The head's bias, shape ``(vocab,)``, or None.
        scale: What the scores are multiplied by; with tied weights T5 has ``d_model ** -0.5``.
        softcap: Where set, scaled scores s become ``softcap * tanh(s / softcap)``.
        alpha: See `caref_loss`, as for all that follow but the last.
        beta: See there.
        lambda_sced: See there.
        lambda_kl: See there.
        normalize: See there.
        ignore_index: See there.
        reduction: See there.
        mask: See there.
        penalty_mask: See there.
        num_items_in_batch: See there.
        fused: See there.
        memory_mib: Budget in MiB for a chunk of logits, at least 16 rows of them; by default chosen from the
            shape and the device.

    Returns:
        As `caref_loss`.

    Raises:
        TypeError: If a dtype is wrong.
        ValueError: If the shapes disagree, a label lies outside the vocabulary, a setting is out of range, or
            the kernel asked for cannot run.
        RuntimeError: In a backward pass with ``create_graph=True``.

    Example:
        >>> hidden, weight = torch.zeros(1, 2, 3), torch.ones(4, 3)
        >>> linear_caref_loss(hidden, weight, torch.tensor([[3, -100]]))  # log(4)
        tensor(1.3863)
    """
    check_settings(alpha, beta, lambda_sced, lambda_kl, normalize)
    _check_head(hidden, weight, bias, softcap)
    loss = fused_loss(
        replace(DeferredLogits.promise(hidden, weight, bias), scale=scale, softcap=softcap),
        labels,
        Penalties(lambda_sced, lambda_kl, alpha, beta, normalize),
        ignore_index=ignore_index,
        reduction=reduction,
        mask=mask,
        penalty_mask=penalty_mask,
        num_items_in_batch=num_items_in_batch,
        backend=fused,
        memory_mib=memory_mib,
    )
    return loss.value


def _check_head(hidden: Tensor, weight: Tensor, bias: Tensor | None, softcap: float | None) -> None:
    if weight.dim() != 2 or hidden.dim() == 0 or hidden.shape[-1] != weight.shape[1]:
        raise ValueError(
            "weight must have shape (vocab, hidden) with the last axis of hidden, "
            f"got {tuple(weight.shape)} for hidden of shape {tuple(hidden.shape)}"
        )
    if bias is not None and tuple(bias.shape) != (len(weight),):
        raise ValueError(f"bias must have shape ({len(weight)},), got {tuple(bias.shape)}")
    dtypes = {each.dtype for each in (hidden, weight, bias) if each is not None}
    if len(dtypes) > 1 and not torch.is_autocast_enabled(hidden.device.type):
        raise TypeError(f"hidden, weight and bias must have one dtype, got {', '.join(map(str, dtypes))}")
    if softcap is not None and not 0 < softcap < math.inf:
        raise ValueError(f"softcap must be above 0 and finite, or None, got {softcap}")
