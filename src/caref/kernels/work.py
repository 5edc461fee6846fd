"""What the two entrances of the fused loss share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from caref.losses.penalties import Penalties


@dataclass(frozen=True, slots=True)
class Work:
    """All of a call but the tensors that may need a gradient."""

    labels: Tensor
    """Shape ``(rows,)``, int64; negative where a row is ignored."""
    penalised: Tensor | None
    """Shape ``(rows,)``, bool: where penalties apply. None for all."""
    penalties: Penalties
    """The terms beside cross-entropy."""
    scale: float | Tensor
    """What the sum over rows is multiplied by."""
    per_row: bool
    """Give a value for each row instead, neither summed nor scaled."""
    differentiable: bool
    """Whether a gradient may be asked for later."""

    def value(self, terms: Tensor) -> Tensor:
        """The outcome, from the unweighted terms, shape ``(3, rows)``."""
        values, sced, kl = terms
        if self.penalties.sced is not None:
            values = values + self.penalties.sced * sced
        if self.penalties.kl is not None:
            values = values + self.penalties.kl * kl
        return values if self.per_row else values.sum() * self.scale

    def of_rows(self, where: Tensor) -> Work:
        """The same of some rows alone."""
        penalised = None if self.penalised is None else self.penalised[where]
        return replace(self, labels=self.labels[where], penalised=penalised)


def times(gradient: Tensor, factor: Tensor) -> Tensor:
    """The gradient by what reached the loss from above; not in place, for it may be asked for again."""
    if factor.device.type == "cpu" and factor.dim() == 0 and factor.item() == 1:
        return gradient
    return (gradient * factor).to(gradient.dtype)


def refuse_second_derivative() -> None:
    """Raise in a backward pass that is itself to be differentiated."""
    if torch.is_grad_enabled():
        raise RuntimeError(
            "the fused loss has a first derivative only, and create_graph=True asks for a second; "
            "use the eager one: fused='off', or the functions of caref.losses"
        )
