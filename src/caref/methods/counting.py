"""How many parameters a method trains, from a configuration alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig

    from caref.methods.method import Method


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Parameters of a model as trained.

    Attributes:
        trainable: Those that receive a gradient.
        total: All of them, an adapter's own included, the frozen original of a trained copy not, nor what
            PEFT only notes in a parameter.
    """

    trainable: int
    total: int

    @property
    def percent(self) -> float:
        """The share that is trained, in percent."""
        return 100 * self.trainable / self.total


def count_parameters(model: torch.nn.Module) -> ParameterCount:
    """Count a model to which a method was applied; shared weights count once."""
    left_out = {id(p) for module in model.modules() for p in _not_weights(module)}
    parameters = [p for p in model.parameters() if id(p) not in left_out]
    return ParameterCount(
        trainable=sum(p.numel() for p in parameters if p.requires_grad),
        total=sum(p.numel() for p in parameters) + sum(map(_frozen_in_copy, model.modules())),
    )


def count_for_config(method: Method, config: PreTrainedConfig) -> ParameterCount:
    """Count what a method would train on a model of this configuration; allocates no weights."""
    from caref.models.loading import empty_model

    return count_parameters(method.apply(empty_model(config)))


def _not_weights(module: torch.nn.Module) -> list[torch.nn.Parameter]:
    """The frozen originals inside PEFT's trained-copy layer, and the ranks that AdaLoRA keeps count of."""
    from peft.tuners.adalora.layer import AdaLoraLayer
    from peft.tuners.ln_tuning.layer import LNTuningLayer

    if isinstance(module, LNTuningLayer):
        return list(module.base_layer.parameters())
    return list(module.ranknum.parameters()) if isinstance(module, AdaLoraLayer) else []


def _frozen_in_copy(module: torch.nn.Module) -> int:
    """How many weights of a copy of q, k and v are no parameters: k's and v's."""
    from caref.methods.fused import QueryOfFused

    return sum(b.numel() for b in module.buffers()) if isinstance(module, QueryOfFused) else 0
