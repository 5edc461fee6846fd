"""The same objective made fast: fused with its gradient, and without ever holding all the logits.

The functions have the signatures of `caref.losses`, which is the reference for their values.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from caref.kernels.caref import caref_loss, linear_caref_loss
    from caref.kernels.deferred import DeferredLogits
    from caref.kernels.head import defer_head

_LAZY = {
    "DeferredLogits": "caref.kernels.deferred",
    "caref_loss": "caref.kernels.caref",
    "defer_head": "caref.kernels.head",
    "linear_caref_loss": "caref.kernels.caref",
}

__all__ = ["DeferredLogits", "caref_loss", "defer_head", "linear_caref_loss"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'caref.kernels' has no attribute {name!r}")
