"""BERTScore with one encoder, and a cache of it on disk. Importing this loads no torch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from caref.metrics.bertscore.cache import ScoreCache
    from caref.metrics.bertscore.scorer import BertScorer

_LAZY = {
    "BertScorer": "caref.metrics.bertscore.scorer",
    "ScoreCache": "caref.metrics.bertscore.cache",
}

__all__ = ["BertScorer", "ScoreCache"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'caref.metrics.bertscore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
