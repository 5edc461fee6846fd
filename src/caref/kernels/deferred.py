"""Logits that are promised and not computed: hidden states, and the head that would make logits of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeGuard

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_map


class Head(NamedTuple):
    """What makes logits of hidden states: ``softcap(hidden @ weight.T + bias)``."""

    weight: Tensor
    """Shape ``(vocab, hidden)``."""
    bias: Tensor | None = None
    """Shape ``(vocab,)``."""
    softcap: float | None = None
    """Where set, scores s become ``softcap * tanh(s / softcap)``."""


# A dataclass: DistributedDataParallel looks into one for the tensors that a loss may depend on.
@dataclass(frozen=True, eq=False)
class DeferredLogits:
    """``softcap(scale * (hidden @ weight.T + bias))``, not computed.

    It stays a promise under what models do to their logits: a choice of positions, a bias, a number that
    multiplies or divides, ``torch.tanh`` between two of them, ``float()``. Whatever else is done to it is
    done to the logits: it computes them, with their gradient, each time anew. So they cannot be changed in
    place.

    Attributes:
        hidden: Shape ``(..., tokens, hidden)``.
        weight: Shape ``(vocab, hidden)``, the dtype of `hidden`.
        bias: Shape ``(vocab,)``, or None.
        scale: What the scores are multiplied by.
        softcap: Where set, scaled scores s become ``softcap * tanh(s / softcap)``.
        wide: Whether the logits are float32 whatever the dtype of `hidden`.
    """

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None = None
    scale: float = 1.0
    softcap: float | None = None
    wide: bool = False

    # As a tensor's: a number of NumPy's leaves an operation to it.
    __array_priority__ = 1000

    @classmethod
    def promise(cls, hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> DeferredLogits:
        """``hidden @ weight.T + bias``, in autocast's dtype where that is on."""
        device = hidden.device.type
        if torch.is_autocast_enabled(device) and hidden.dtype != torch.float64:
            dtype = torch.get_autocast_dtype(device)
            hidden, weight = hidden.to(dtype), weight.to(dtype)
            bias = None if bias is None else bias.to(dtype)
        # Views: from a parameter itself DistributedDataParallel does not see that a loss depends on it.
        return cls(hidden, weight.view_as(weight), None if bias is None else bias.view_as(bias))

    @property
    def shape(self) -> torch.Size:
        """``(..., tokens, vocab)``."""
        return torch.Size((*self.hidden.shape[:-1], len(self.weight)))

    @property
    def dtype(self) -> torch.dtype:
        """What the logits would have."""
        return torch.promote_types(self.hidden.dtype, torch.float32) if self.wide else self.hidden.dtype

    @property
    def device(self) -> torch.device:
        """Where the logits would be."""
        return self.hidden.device

    def rows(self) -> tuple[Tensor, Head]:
        """Hidden states, shape ``(positions, hidden)``, and the head whose logits these are."""
        hidden, bias = self.hidden.reshape(-1, self.hidden.shape[-1]), self.bias
        if not math.isclose(self.scale, 1.0, rel_tol=1e-12):
            hidden, bias = hidden * self.scale, None if bias is None else bias * self.scale
        return hidden, Head(self.weight, bias, self.softcap)

    def compute(self) -> Tensor:
        """The logits, shape ``(..., vocab)``."""
        hidden, head = self.rows()
        with torch.autocast(self.device.type, enabled=False):
            scores = F.linear(hidden, head.weight, head.bias).view(self.shape).to(self.dtype)
            return scores if head.softcap is None else head.softcap * torch.tanh(scores / head.softcap)

    def float(self) -> Any:
        """The same as float32."""
        return self.compute().float() if self.dtype == torch.float64 else replace(self, wide=True)

    def __getitem__(self, index: Any) -> Any:
        if _leaves_vocab(index, len(self.shape)):
            return replace(self, hidden=self.hidden[index])
        return self.compute()[index]

    def __add__(self, other: Any) -> Any:
        if not self._takes_bias(other):
            return self.compute() + other
        bias = other.flatten().to(self.hidden.dtype) / self.scale
        return replace(
            self,
            bias=bias if self.bias is None else self.bias + bias,
            wide=self.wide or torch.promote_types(self.dtype, other.dtype) != self.dtype,
        )

    def _takes_bias(self, other: Any) -> bool:
        """Whether to add it is to add the same to every position, and no float64 comes of it."""
        if not isinstance(other, Tensor) or self.softcap is not None:
            return False
        vocab = len(self.weight)
        alike = other.shape[-1:] == (vocab,) and other.numel() == vocab and other.dim() <= len(self.shape)
        return alike and torch.promote_types(self.dtype, other.dtype) in (self.dtype, torch.float32)

    def __mul__(self, other: Any) -> Any:
        if not _is_factor(other):
            return self.compute() * other
        softcap = None if self.softcap is None else self.softcap * abs(other)
        return replace(self, scale=self.scale * other, softcap=softcap)

    def __truediv__(self, other: Any) -> Any:
        return self * (1 / other) if _is_factor(other) else self.compute() / other

    __radd__, __rmul__ = __add__, __mul__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.endswith("_"):
            raise AttributeError(f"promised logits cannot be changed in place, and {name!r} asks for it")
        return getattr(self.compute(), name)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function is torch.tanh and not kwargs and args[0].softcap is None:
            return replace(args[0], softcap=1.0)
        return function(*tree_map(_computed, args), **tree_map(_computed, kwargs or {}))


def _computed(value: Any) -> Any:
    return value.compute() if isinstance(value, DeferredLogits) else value


def _of_logits(name: str) -> Any:
    def operator(self: DeferredLogits, *others: Any) -> Any:
        return getattr(self.compute(), name)(*others)

    return operator


# Python looks for these in the class alone, where `__getattr__` is not asked.
for _name in (
    *("neg", "pos", "abs", "sub", "rsub", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow"),
    *("matmul", "rmatmul", "eq", "ne", "lt", "le", "gt", "ge"),
    *("len", "iter", "reversed", "contains", "bool", "int", "float", "array"),
):
    setattr(DeferredLogits, f"__{_name}__", _of_logits(f"__{_name}__"))


def _is_factor(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and value != 0 and math.isfinite(value)


def _leaves_vocab(index: Any, dimensions: int) -> bool:
    """Whether an index chooses among positions alone."""
    parts = index if isinstance(index, tuple) else (index,)
    if not all(part is Ellipsis or isinstance(part, int | slice) for part in parts):
        return False
    everything = slice(None)
    if Ellipsis in parts[:-1]:
        return parts.count(Ellipsis) == 1 and parts[-1] == everything
    if parts[-1:] == (Ellipsis,):
        return len(parts) <= dimensions
    return len(parts) < dimensions or (len(parts) == dimensions and parts[-1] == everything)
