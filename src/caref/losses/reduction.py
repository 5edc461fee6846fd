"""What every loss shares: checking its input, choosing its positions, reducing to one number."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, get_args

import torch
from torch import Tensor

Reduction = Literal["mean", "sum", "none"]


class Positions(NamedTuple):
    """Checked input that is safe to compute on at every position."""

    logits: Tensor
    """Shape ``(..., vocab)``, float32 or float64, 0 at ignored positions."""
    labels: Tensor
    """Shape ``(...)``, int64, 0 at ignored positions."""
    keep: Tensor
    """Shape ``(...)``, bool: the positions that count."""


def kept_positions(logits: Tensor, labels: Tensor, ignore_index: int, mask: Tensor | None) -> Positions:
    """Check logits, labels and mask, and blank out what does not count.

    Ignored logits are replaced before anything is computed, so that an inf or a NaN there
    reaches neither the value nor the gradient.

    Raises:
        TypeError: If a dtype is wrong.
        ValueError: If the shapes disagree or a label lies outside the vocabulary. On an
            accelerator the labels are checked without waiting for it, and the error is that
            of the device.
    """
    keep = which_count(logits, labels, ignore_index, mask)
    logits = logits.masked_fill(~keep.unsqueeze(-1), 0.0)
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    return Positions(logits, labels.masked_fill(~keep, 0), keep)


class LogitsLike(Protocol):
    """What is checked of logits: a tensor is one, and so is a promise of one."""

    @property
    def shape(self) -> torch.Size:
        """``(..., vocab)``."""

    @property
    def dtype(self) -> torch.dtype:
        """A floating dtype."""


def which_count(
    logits: LogitsLike,
    labels: Tensor,
    ignore_index: int,
    mask: Tensor | None,
    penalty_mask: Tensor | None = None,
) -> Tensor:
    """Check logits, labels and masks; the positions that count, shape ``(...)``, bool.

    Raises:
        TypeError: If a dtype is wrong.
        ValueError: If the shapes disagree or a label lies outside the vocabulary.
    """
    if not logits.dtype.is_floating_point:
        raise TypeError(f"logits must be floating point, got {logits.dtype}")
    if len(logits.shape) == 0 or logits.shape[-1] == 0:
        raise ValueError(f"logits must have shape (..., vocab) with vocab > 0, got {tuple(logits.shape)}")
    check_shape("labels", labels, logits.shape[:-1])
    if labels.dtype != torch.int64:
        raise TypeError(f"labels must be int64, got {labels.dtype}")
    _check_range(labels, logits.shape[-1], ignore_index)
    if penalty_mask is not None:
        check_mask("penalty_mask", penalty_mask, logits)
    keep = labels != ignore_index
    if mask is not None:
        check_mask("mask", mask, logits)
        keep = keep & mask
    return keep


def reduce_positions(
    values: Tensor, keep: Tensor, reduction: Reduction, num_items_in_batch: int | Tensor | None
) -> Tensor:
    """Sum, mean or the values themselves over the kept positions; 0 where there is none.

    Args:
        values: Finite values, shape ``(...)``.
        keep: Which of them count, shape ``(...)``, bool.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        num_items_in_batch: What ``"mean"`` divides by instead of the number of kept positions.
            Under ``DataParallel`` transformers passes one share per device: they are added up.
    """
    check_choice("reduction", reduction, get_args(Reduction))
    values = values.masked_fill(~keep, 0.0)
    if reduction == "none":
        return values
    if reduction == "sum":
        return values.sum()
    return values.sum() / mean_divisor(keep, num_items_in_batch)


def mean_divisor(keep: Tensor, num_items_in_batch: int | Tensor | None) -> int | Tensor:
    """What the sum is divided by for a mean: the number of positions, at least 1."""
    if num_items_in_batch is None:
        num_items_in_batch = keep.sum()
    if isinstance(num_items_in_batch, Tensor):
        return num_items_in_batch.sum().clamp(min=1)
    return max(num_items_in_batch, 1)


def check_mask(name: str, mask: Tensor, logits: LogitsLike) -> None:
    """Raise unless `mask` is bool and has one value per position of `logits`."""
    check_shape(name, mask, logits.shape[:-1])
    if mask.dtype != torch.bool:
        raise TypeError(f"{name} must be bool, got {mask.dtype}")


def check_shape(name: str, tensor: Tensor, expected: Sequence[int]) -> None:
    """Raise unless `tensor` has one value per position."""
    if tuple(tensor.shape) != tuple(expected):
        raise ValueError(
            f"{name} must have shape {tuple(expected)}, that of logits without its last axis, "
            f"got {tuple(tensor.shape)}"
        )


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise unless `value` is one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_at_least(name: str, value: float, low: float) -> None:
    """Raise unless `value` is a finite number of at least `low`."""
    if not (math.isfinite(value) and value >= low):
        raise ValueError(f"{name} must be a finite number of at least {low:g}, got {value}")


def _check_range(labels: Tensor, vocab: int, ignore_index: int) -> None:
    bad = ((labels < 0) | (labels >= vocab)) & (labels != ignore_index)
    if labels.device.type == "cpu":
        if bad.any():
            raise ValueError(
                f"labels must lie in [0, {vocab}) or be ignore_index ({ignore_index}), "
                f"got {labels[bad][0].item()}"
            )
    elif labels.device.type == "cuda":
        # Reading the answer here would make the host wait for the device at every step.
        torch._assert_async(~bad.any(), f"labels must lie in [0, {vocab}) or be ignore_index")
