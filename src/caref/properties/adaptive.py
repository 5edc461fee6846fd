"""Is an objective adaptive: does a token's gradient depend on more than the entropy?"""

from __future__ import annotations

import torch
from torch import Tensor

from caref.properties.part import TOLERANCE, Finding, Part


def equal_entropies() -> Tensor:
    """Two distributions over 8 tokens with the same entropy, and 0.2 for token 0 in both; shape (2, 8).

    Token 1, the label, has 0.4 in the first and 0.05 in the second.
    """
    one = torch.tensor([0.2, 0.4, *[0.4 / 6] * 6], dtype=torch.float64)

    def other(p: float) -> Tensor:
        return torch.tensor([0.2, 0.05, p, *[(0.75 - p) / 5] * 5], dtype=torch.float64)

    low, high = 0.15, 0.75  # the entropy falls with p
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _entropy(other(middle)) > _entropy(one) else (low, middle)
    return torch.stack([one, other(low)])


def adaptive(part: Part) -> Finding:
    """Does the gradient of a token depend on more than its own probability and the entropy?

    Two distributions have the same entropy and give token 0, which is not the label, the same
    probability. "yes" if the gradients on its logit differ by more than 1e-6 of the larger one.

    The paper's caption says less: that the penalty varies with the token's probability. The second number
    is by how much the gradients of two tokens with different probabilities differ within a distribution.
    """
    logits = part.objective.scores(equal_entropies())
    gradients = part.gradient(logits, torch.tensor([1, 1]))
    gap = _gap(gradients[0, 0], gradients[1, 0])
    varies = _gap(gradients[0, 0], gradients[0, 2])
    evidence = f"the gradients differ by {100 * gap:.2g} %" if gap > TOLERANCE else "the gradients are equal"
    numbers = {"gap": gap, "gap_between_tokens": varies}
    return Finding("yes" if gap > TOLERANCE else "no", evidence, numbers=numbers)


def _entropy(probabilities: Tensor) -> float:
    return -(probabilities * probabilities.log()).sum().item()


def _gap(one: Tensor, other: Tensor) -> float:
    return ((one - other).abs() / torch.maximum(one.abs(), other.abs()).clamp(min=1e-300)).item()
