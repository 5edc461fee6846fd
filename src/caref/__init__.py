"""caref: fine-tune a language model to answer and explain, and measure both honestly.

The objective is importable from here; nothing heavy is loaded before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from caref.kernels import defer_head
    from caref.losses import CarefLoss, caref_loss, kl_uniform_loss, sced_loss

__version__ = "0.1.0"

_LAZY = {
    "CarefLoss": "caref.losses",
    "caref_loss": "caref.losses",
    "defer_head": "caref.kernels",
    "kl_uniform_loss": "caref.losses",
    "sced_loss": "caref.losses",
}

__all__ = ["CarefLoss", "__version__", "caref_loss", "defer_head", "kl_uniform_loss", "sced_loss"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'caref' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
