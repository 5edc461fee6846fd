"""Training q alone where one matrix holds q, k and v."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from peft import LNTuningConfig
from peft.tuners.ln_tuning.layer import LNTuningLayer
from peft.tuners.tuners_utils import check_adapters_to_merge
from torch import Tensor, nn

from caref.errors import CarefError
from caref.models.architectures import matching

if TYPE_CHECKING:
    from peft import PeftModel


class QueryOfFused(nn.Module):
    """A linear layer whose q part is a parameter and whose k and v are buffers.

    An optimizer sees nothing but q, and nothing that freezes or frees parameters reaches k and v. The
    forward pass puts the matrix together, so that it computes what the whole layer does, to the bit. In a
    state dict the layer has the names and shapes of the whole one, ``weight`` and ``bias``.

    Args:
        layer: A `torch.nn.Linear`, or a `Conv1D`, whose weight is transposed. It is left as it is.
        groups: Into how many equal groups its output features fall.
        width: How many features at the beginning of each group are q's.
    """

    def __init__(self, layer: nn.Module, groups: int, width: int) -> None:
        super().__init__()
        self.groups, self.width = groups, width
        self.transposed = not isinstance(layer, nn.Linear)
        for name, whole in layer.named_parameters(recurse=False):
            query, rest = self._split(name, whole.detach())
            # Not views of the layer's own tensor.
            self.register_parameter(f"query_{name}", nn.Parameter(query.clone()))
            self.register_buffer(f"rest_{name}", rest.clone())

    def forward(self, hidden: Tensor) -> Tensor:
        """The whole layer's output, shape ``(..., out_features)``."""
        weight = self.whole("weight")
        if not self.transposed:
            bias = self.whole("bias") if "query_bias" in self._parameters else None
            return nn.functional.linear(hidden, weight, bias)
        # As Conv1D computes it: another order of summation would give other bits.
        flat = torch.addmm(self.whole("bias"), hidden.view(-1, hidden.shape[-1]), weight)
        return flat.view(*hidden.shape[:-1], weight.shape[1])

    def whole(self, name: str) -> Tensor:
        """The whole ``"weight"`` or ``"bias"``: q from the parameter, the rest from the buffer."""
        axis = self._axis(name)
        query, rest = (
            getattr(self, part).unflatten(axis, (self.groups, -1))
            for part in (f"query_{name}", f"rest_{name}")
        )
        return torch.cat([query, rest], dim=axis + 1).flatten(axis, axis + 1)

    def written_into(self, layer: nn.Module) -> nn.Module:
        """A copy of a layer of this kind that holds these weights."""
        copied = copy.deepcopy(layer)
        with torch.no_grad():
            for name, parameter in copied.named_parameters(recurse=False):
                parameter.copy_(self.whole(name))
        return copied

    def _axis(self, name: str) -> int:
        """The axis of the output features."""
        return 1 if self.transposed and name == "weight" else 0

    def _split(self, name: str, whole: Tensor) -> tuple[Tensor, Tensor]:
        axis = self._axis(name)
        groups = whole.unflatten(axis, (self.groups, -1))
        sizes = [self.width, groups.shape[axis + 1] - self.width]
        query, rest = (part.flatten(axis, axis + 1) for part in groups.split(sizes, dim=axis + 1))
        return query, rest

    def _names(self) -> list[str]:
        return [name.removeprefix("query_") for name in self._parameters]

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name in self._names():
            whole = self.whole(name)
            destination[prefix + name] = whole if keep_vars else whole.detach()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in self._names():
            if (whole := state_dict.pop(prefix + name, None)) is not None:
                state_dict[f"{prefix}query_{name}"], state_dict[f"{prefix}rest_{name}"] = self._split(
                    name, whole
                )
        super()._load_from_state_dict(state_dict, prefix, *rest)


class QueryTuningLayer(LNTuningLayer):
    """PEFT's trained copy of a layer, of which q alone is trained.

    Merging puts an ordinary layer in the base layer's place; unmerging brings back the same parameters.

    Args:
        base_layer: The layer that holds q, k and v.
        adapter_name: The adapter's name.
        config: The adapter's configuration.
        groups: As of `QueryOfFused`.
        width: As of `QueryOfFused`.
    """

    def __init__(
        self, base_layer: nn.Module, adapter_name: str, config: LNTuningConfig, *, groups: int, width: int
    ) -> None:
        super().__init__(base_layer, adapter_name, config)
        self.ln_tuning_layers[adapter_name] = QueryOfFused(base_layer, groups, width)
        self._set_aside: dict[str, QueryOfFused] = {}

    def merge(self, adapter_names: list[str] | None = None, safe_merge: bool = False) -> None:
        """Put the trained copy in the base layer's place, as a layer of the base layer's own kind."""
        for name in check_adapters_to_merge(self, adapter_names):
            trained = self.ln_tuning_layers[name]
            if isinstance(trained, QueryOfFused):
                self._set_aside[name] = trained
                self.ln_tuning_layers[name] = trained.written_into(self.base_layer)
        super().merge(adapter_names, safe_merge)

    def unmerge(self) -> None:
        """Put the base layer back."""
        merged = self.merged_adapters[-1:]
        super().unmerge()
        for name in merged:
            if name in self._set_aside:
                weight = self.ln_tuning_layers[name].weight
                # The model may have been moved meanwhile.
                self.ln_tuning_layers[name] = self._set_aside.pop(name).to(weight.device, weight.dtype)


def tune_query_only(model: PeftModel, pattern: str, *, groups: int, width: int) -> None:
    """Leave of the trained copies of some layers q alone to train, in place.

    Args:
        model: With an LN tuning adapter.
        pattern: The layers that hold q, k and v, by their names in the base model.
        groups: As of `QueryOfFused`.
        width: As of `QueryOfFused`.

    Raises:
        CarefError: If a layer has another shape than its architecture's.
    """
    base, adapter = model.get_base_model(), model.active_adapter
    layers = {name: layer for name, layer in base.named_modules() if isinstance(layer, LNTuningLayer)}
    for name in matching(pattern, list(layers)):
        layer = layers[name].get_base_layer()
        features = layer.weight.shape[0 if isinstance(layer, nn.Linear) else 1]
        if features % groups or features // groups <= width:
            raise CarefError(
                f"{name} has {features} output features, which are not q, k and v of {groups} x {width}"
            )
        parent, _, child = name.rpartition(".")
        tuned = QueryTuningLayer(layer, adapter, model.peft_config[adapter], groups=groups, width=width)
        setattr(base.get_submodule(parent), child, tuned.train(layer.training))
