"""The mathematics of the objective: eager, readable, the reference for everything faster.

Listing the objectives imports no torch; using one does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from caref.registry import Registry

if TYPE_CHECKING:
    from caref.losses.caref import CarefLoss, caref_loss
    from caref.losses.cross_entropy import cross_entropy_loss
    from caref.losses.kl_uniform import kl_uniform_loss
    from caref.losses.objective import Objective
    from caref.losses.sced import sced_loss

# An entry is a subclass of `Objective`; its constructor's arguments are its settings.
OBJECTIVES: Registry[type[Objective]] = Registry(
    "objective",
    {
        "caref": "caref.losses.caref:CarefLoss",
        "ce": "caref.losses.cross_entropy:CrossEntropyObjective",
        "sced": "caref.losses.sced:ScedObjective",
        "kl": "caref.losses.kl_uniform:KlUniformObjective",
        "entropy": "caref.losses.entropy:EntropyObjective",
        "label_smoothing": "caref.losses.label_smoothing:LabelSmoothingObjective",
        "focal": "caref.losses.focal:FocalObjective",
        "entmax15": "caref.losses.entmax15:Entmax15Objective",
        "sparsemax": "caref.losses.sparsemax:SparsemaxObjective",
        "additive": "caref.losses.additive:AdditiveObjective",
        "asft": "caref.losses.asft:AsftObjective",
        "eaft": "caref.losses.eaft:EaftObjective",
    },
)

_LAZY = {
    "CarefLoss": "caref.losses.caref",
    "Objective": "caref.losses.objective",
    "caref_loss": "caref.losses.caref",
    "cross_entropy_loss": "caref.losses.cross_entropy",
    "kl_uniform_loss": "caref.losses.kl_uniform",
    "sced_loss": "caref.losses.sced",
}

__all__ = [
    "OBJECTIVES",
    "CarefLoss",
    "Objective",
    "caref_loss",
    "cross_entropy_loss",
    "kl_uniform_loss",
    "sced_loss",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'caref.losses' has no attribute {name!r}")
