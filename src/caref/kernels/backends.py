"""Which row kernel runs."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import warnings
from typing import Literal, get_args

import torch

from caref.kernels.rows import IGNORED, RowKernel
from caref.losses.penalties import Penalties
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
    chunked one. The first time it compares the two on a few rows; should Triton not agree, a warning says
    so and the chunked one is taken. It never takes torch.compile, which begins with seconds of compiling.

    Raises:
        ValueError: If `asked` is unknown, or cannot run here.
    """
    check_choice("fused", asked, ("auto", *get_args(Backend)))
    if asked == "auto":
        able = device.type == "cuda" and _why_no_triton(device, dtype) is None
        return "triton" if able and triton_agrees(device) else "chunked"
    if asked == "triton" and (why := _why_no_triton(device, dtype)):
        raise ValueError(f"the Triton kernel cannot run here: {why}; fused='auto' takes what can")
    return asked  # type: ignore[return-value]


def row_kernel(backend: Backend) -> RowKernel:
    """The function behind a backend's name."""
    return importlib.import_module(_MODULES[backend]).row_terms


@functools.cache
def triton_agrees(device: torch.device) -> bool:
    """Whether the Triton kernel runs on a device and gives there what the chunked one gives; tried once."""
    scores = torch.linspace(-6, 6, 3 * 1100, device=device).view(3, 1100)
    labels = torch.tensor([1099, IGNORED, 0], device=device)
    try:
        outcomes = []
        for backend in ("triton", "chunked"):
            gradient = torch.empty_like(scores)
            terms = row_kernel(backend)(scores, labels, Penalties(0.1, 0.1), gradient=gradient)
            outcomes.append((terms, gradient))
        torch.testing.assert_close(*outcomes, rtol=1e-3, atol=1e-5)
    except Exception as error:  # whatever a compiler for GPUs may raise
        reason = " ".join(str(error).split())
        warnings.warn(
            f"the Triton kernel does not work on {device}, the chunked one is taken: {reason}", stacklevel=2
        )
        return False
    return True


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
