"""Matrix products with the head's weight."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``inputs @ weight.T + bias``, as `torch.nn.functional.linear`, without gradients.

    On a CPU, PyTorch gives float32 products to MKL, which is slow on processors of other makers than its own.
    oneDNN, which compiled models use, is at home on all of them, and computes in float32 too.

    Args:
        inputs: Shape ``(rows, in)``.
        weight: Shape ``(out, in)``; a transposed view does.
        bias: Shape ``(out,)``.
    """
    if _goes_to_onednn(inputs):
        return torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return F.linear(inputs, weight, bias)


def _goes_to_onednn(tensor: Tensor) -> bool:
    return (
        tensor.device.type == "cpu"
        and tensor.dtype == torch.float32
        and len(tensor) > 0
        and torch.backends.mkldnn.is_available()
        and torch._C._get_mkldnn_enabled()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )
