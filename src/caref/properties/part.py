"""What is measured of an objective, and what a measurement says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

if TYPE_CHECKING:
    from caref.losses import Objective

Verdict = Literal["yes", "no", "depends"]

TOLERANCE = 1e-6
"""Relative differences below this are rounding."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One property of one objective.

    Attributes:
        verdict: ``"yes"``, ``"no"``, or ``"depends"`` where it holds from some starts only.
        evidence: The numbers behind it, in words.
        paper: What the paper says; None where it does not say.
        numbers: The numbers.
    """

    verdict: Verdict
    evidence: str
    paper: Verdict | None = None
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def disagrees(self) -> bool:
        """Whether the paper says otherwise."""
        return self.paper is not None and self.paper != self.verdict


class Part:
    """What is measured of an objective: a value and a gradient per row of logits.

    Attributes:
        objective: Whose part it is.
        is_penalty: Whether it is the penalty; else it is the whole loss.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.is_penalty = True
        logits = normal(2, 12, seed=0)
        penalties = [term for term in self._terms(logits, torch.tensor([0, 1])) if not term.everywhere]
        by_label = (
            [self.values(logits, torch.tensor([label, label])) for label in (0, 1)] if penalties else []
        )
        self.is_penalty = bool(penalties) and torch.equal(*by_label)

    @property
    def name(self) -> str:
        """What is measured, in words."""
        return "penalty" if self.is_penalty else "whole loss"

    @property
    def follows_a_target(self) -> bool:
        """Whether something given, labels or a base, says where to go."""
        return not self.is_penalty or self.objective.needs_reference

    def values(self, logits: Tensor, labels: Tensor) -> Tensor:
        """One value per row, shape ``(rows,)``."""
        terms = self._terms(logits, labels)
        if self.is_penalty:
            terms = [term for term in terms if not term.everywhere]
        return torch.stack([term.weight * term.values for term in terms]).sum(0)

    def gradient(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The gradient that training uses, shape of `logits`."""
        logits = logits.detach().requires_grad_()
        return torch.autograd.grad(self.values(logits, labels).sum(), logits)[0]

    def _terms(self, logits: Tensor, labels: Tensor) -> list[Any]:
        given = {"reference_logits": base_of(logits)} if self.objective.needs_reference else {}
        return self.objective.terms(logits, labels, **given)


def normal(*shape: int, seed: int, scale: float = 2.0) -> Tensor:
    """Normally distributed logits, the same every time."""
    return scale * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def base_of(logits: Tensor) -> Tensor:
    """What stands for the base's logits: the same random row at every position."""
    return normal(logits.shape[-1], seed=7).expand(logits.shape)
