"""Is an objective differentiable: is its gradient the value's derivative, and continuous?"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from caref.properties.part import TOLERANCE, Finding, Part, normal


def differentiable(part: Part) -> Finding:
    """Is the gradient the value's derivative, and is it continuous?

    1. At 24 random distributions over 12 tokens: autograd's gradient against central differences.
    2. Along 8 random lines through the logits: where the gradient changes most between two points of a
       grid, the interval is halved until it is 1e-9 long, each time keeping the half with the larger
       change. A change that is left is a jump. No kink has to be known in advance: lines cross P = 1/V
       and the boundaries of a sparse support. The change of the curvature is looked at likewise, down to
       an interval of 1e-4; it is told, and does not decide.

    Both are relative to the largest gradient met. "yes" if both are below 1e-6.
    """
    points = normal(24, 12, seed=1)
    labels = torch.arange(24) % 12
    gradient = part.gradient(points, labels)
    step = 1e-5
    shifted = points.unsqueeze(1) + step * torch.eye(12, dtype=torch.float64)
    back = points.unsqueeze(1) - step * torch.eye(12, dtype=torch.float64)
    wide = labels.repeat_interleave(12)
    difference = part.values(shifted.flatten(0, 1), wide) - part.values(back.flatten(0, 1), wide)
    numeric = difference.reshape(24, 12) / (2 * step)
    error = ((gradient - numeric).abs().max() / gradient.abs().max()).item()

    ends = normal(8, 12, seed=2), normal(8, 12, seed=3)
    jumps, bends, slopes = [], [], []
    for start, end, label in zip(*ends, labels[:8], strict=True):

        def along(t: Tensor, start: Tensor = start, end: Tensor = end, label: Tensor = label) -> Tensor:
            return part.gradient(start + t.unsqueeze(-1) * (end - start), label.expand(t.shape))

        def curvature(t: Tensor, along: Callable[[Tensor], Tensor] = along) -> Tensor:
            return (along(t + 1e-6) - along(t - 1e-6)) / 2e-6

        scale = along(torch.linspace(0, 1, 65, dtype=torch.float64)).abs().max().item()
        jumps.append(largest_jump(along, 1e-9) / scale)
        bends.append(largest_jump(curvature, 1e-4) / scale)
        slopes.append(curvature(torch.linspace(0, 1, 65, dtype=torch.float64)).abs().max().item() / scale)
    jump, bend = max(jumps), max(bends) / max(slopes)
    numbers = {"error": error, "gradient_jump": jump, "curvature_jump": bend}
    evidence = f"error {error:.0e}, gradient jumps by {jump:.0e}, curvature by {bend:.0e}"
    if part.objective.has_detached_weight and not part.is_penalty:
        evidence += "; a weight is held constant in the gradient"
    return Finding("yes" if max(error, jump) < TOLERANCE else "no", evidence, numbers=numbers)


def largest_jump(path: Callable[[Tensor], Tensor], narrow: float) -> float:
    """The largest change of `path` over [0, 1] that is left over an interval of length `narrow`.

    Args:
        path: Points, shape ``(n,)``, to vectors, shape ``(n, d)``.
        narrow: Where to stop halving.
    """
    grid = torch.linspace(0, 1, 65, dtype=torch.float64)
    changes = path(grid).diff(dim=0).abs().amax(-1)
    largest = 0.0
    for index in changes.topk(2).indices.tolist():
        low, high = grid[index], grid[index + 1]
        while high - low > narrow:
            middle = (low + high) / 2
            first, second = path(torch.stack([low, middle, high])).diff(dim=0).abs().amax(-1)
            low, high = (low, middle) if first > second else (middle, high)
        largest = max(largest, path(torch.stack([low, high])).diff(dim=0).abs().max().item())
    return largest
