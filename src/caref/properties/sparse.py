"""Is an objective sparse: does the support or the tail shrink when it alone is minimised?"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from caref.properties.part import Finding, Part, Verdict, normal

VOCAB = 200
THRESHOLD = 1e-6
TOP = 10
TARGET = (0.4, 0.25, 0.15, 0.12, 0.08)
"""The probabilities of the first five tokens, where a loss needs a target."""


def starts() -> dict[str, Tensor]:
    """Start distributions over 200 tokens."""
    found = {f"softmax of normal x {scale:g}": normal(VOCAB, seed=4, scale=scale) for scale in (0.5, 2, 4)}
    for p in (0.3, 0.6, 0.9):
        logits = torch.zeros(VOCAB, dtype=torch.float64)
        logits[0] = math.log(p / (1 - p) * (VOCAB - 1))
        found[f"one token {p:g}, the rest equal"] = logits
    return {name: logits.softmax(-1) for name, logits in found.items()}


def sparse(part: Part) -> Finding:
    """Does the support or the tail shrink when this alone is minimised?

    From six start distributions over 200 tokens the logits follow the negative gradient: 600 steps along
    it, whose length falls from 0.4 to 0 as a cosine does. The length and not the size of the gradient is
    set, so that weights and units do not matter.

    A penalty shrinks a distribution if its tail, the mass outside the 10 most likely tokens, falls to less
    than 0.99 of what it was, or if the tail does not grow and the support falls, the number of tokens with
    a probability above 1e-6. Where the loss has labels or a base to follow, a small tail only tells what
    these are: there the support is the number of tokens whose probability is not exactly 0, and it alone
    counts. Labels are drawn from five tokens.

    "yes" if it shrinks from every start, "no" if from none.
    """
    names, probabilities = list(starts()), torch.stack(list(starts().values()))
    begin = part.objective.scores(probabilities)
    end = flow(part, begin)
    low = 0.0 if part.follows_a_target else THRESHOLD
    distribution = part.objective.distribution
    support = [_support(distribution(each), low) for each in (begin, end)]
    tail = [_tail(distribution(each)) for each in (begin, end)]
    shrinks = support[1] < support[0]
    if not part.follows_a_target:
        shrinks = (shrinks & (tail[1] <= tail[0])) | (tail[1] < 0.99 * tail[0])
    count, total = int(shrinks.sum()), len(names)
    verdict: Verdict = "yes" if count == total else "no" if count == 0 else "depends"
    evidence = f"shrinks from {count} of {total} starts; support {_span(support[0])} to {_span(support[1])}, "
    evidence += f"tail {tail[0].mean():.2f} to {tail[1].mean():.2f} on average"
    softmax = end.softmax(-1)
    if not torch.equal(_support(softmax, low), support[1]):
        evidence += f"; softmax of the same scores: support {_span(_support(softmax, low))}, "
        evidence += f"tail {_tail(softmax).mean():.2f}"
    numbers = {
        name: {
            "support": [int(each[row]) for each in support],
            "tail": [each[row].item() for each in tail],
            "shrinks": bool(shrinks[row]),
        }
        for row, name in enumerate(names)
    }
    return Finding(verdict, evidence, numbers=numbers)


def flow(part: Part, logits: Tensor, *, steps: int = 600, length: float = 0.4) -> Tensor:
    """Where the logits end that follow the negative gradient, rows each by themselves."""
    rows = len(logits)
    if part.is_penalty:
        labels, weights = torch.zeros(rows, dtype=torch.int64), None
    else:
        labels = torch.arange(len(TARGET)).repeat(rows)
        weights = torch.tensor(TARGET, dtype=torch.float64).repeat(rows).unsqueeze(-1)
    arrived: Tensor | None = None
    for step in range(steps):
        if weights is None:
            gradient = part.gradient(logits, labels)
        else:
            each = weights * part.gradient(logits.repeat_interleave(len(TARGET), dim=0), labels)
            gradient = each.reshape(rows, len(TARGET), -1).sum(1)
        size = gradient.norm(dim=-1, keepdim=True)
        # Below this it is rounding: the row has arrived.
        arrived = 1e-12 * size if arrived is None else arrived
        direction = torch.where(size > arrived, gradient / size.clamp(min=1e-300), 0.0)
        logits = logits - length * (1 + math.cos(math.pi * step / steps)) / 2 * direction
    return logits


def _support(probabilities: Tensor, low: float) -> Tensor:
    return (probabilities > low).sum(-1)


def _tail(probabilities: Tensor) -> Tensor:
    return (1 - probabilities.topk(TOP, dim=-1).values.sum(-1)).clamp(min=0)


def _span(counts: Tensor) -> str:
    low, high = int(counts.min()), int(counts.max())
    return str(low) if low == high else f"{low}-{high}"
