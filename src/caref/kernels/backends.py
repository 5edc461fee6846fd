"""Which row kernel runs."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from typing import Literal, get_args

import torch

from caref.kernels.rows import RowKernel
from caref.losses.reduction import check_choice

Backend = Literal["chunked", "compiled", "triton"]
"""``chunked``: PyTorch, any device. ``compiled``: the same through torch.compile. ``triton``: GPUs."""

_MODULES: dict[Backend, str] = {
    "chunked": "caref.kernels.chunked",
    "compiled": "caref.kernels.compiled",
    "triton": "caref.kernels.triton_rows",
}


def choose_backend(device: torch.device, dtype: torch.dtype, asked: str = "auto") -> Backend:
    """The backend for a device and the dtype of the logits.

    ``auto`` takes Triton on a CUDA device where it is installed and the dtype is not float64, else the
    chunked one. It never compiles: that takes many seconds before the first step.

    Raises:
        ValueError: If `asked` is unknown, or cannot run here.
    """
    check_choice("fused", asked, ("auto", *get_args(Backend)))
    if asked == "auto":
        return "triton" if _why_no_triton(device, dtype) is None and device.type == "cuda" else "chunked"
    if asked == "triton" and (why := _why_no_triton(device, dtype)):
        raise ValueError(f"the Triton kernel cannot run here: {why}; fused='auto' takes what can")
    return asked  # type: ignore[return-value]


def row_kernel(backend: Backend) -> RowKernel:
    """The function behind a backend's name."""
    return importlib.import_module(_MODULES[backend]).row_terms


def _why_no_triton(device: torch.device, dtype: torch.dtype) -> str | None:
    if not _has_triton():
        return "Triton is not installed (pip install 'caref[triton]')"
    if dtype == torch.float64:
        return "it computes in float32, and the logits are float64"
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"the device is {device.type}, and TRITON_INTERPRET=1 is not set"
    return None


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
