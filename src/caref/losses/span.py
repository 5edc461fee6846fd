"""Which target positions belong to the answer, and which to the explanation after it."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

Span = Literal["all", "answer", "explanation"]


def span_mask(labels: Tensor, span: Span, separator_ids: Sequence[int] | None) -> Tensor | None:
    """The positions of a span, found in each row of labels; None for all of them.

    The explanation begins after the first occurrence of the separator. All before it is the
    answer, the separator's own tokens included: to emit the separator is the decision that the
    answer is complete, so its probability is part of the answer's. A row without separator is
    all answer. Nothing here waits for an accelerator.

    Args:
        labels: Target ids, shape ``(..., tokens)``.
        span: ``"all"``, ``"answer"`` or ``"explanation"``.
        separator_ids: The token ids of the separator, as they appear in the labels.

    Returns:
        Shape ``(..., tokens)``, bool, or None for ``"all"``.

    Example:
        >>> labels = torch.tensor([[5, 9, 9, 6, 9, 9], [5, 6, 7, 1, -100, -100]])
        >>> span_mask(labels, "explanation", [9, 9]).int()
        tensor([[0, 0, 0, 1, 1, 1],
                [0, 0, 0, 0, 0, 0]], dtype=torch.int32)
    """
    if span == "all":
        return None
    assert separator_ids, "an Objective checks this when it is made"
    tokens, width = labels.shape[-1], len(separator_ids)
    explanation = torch.zeros_like(labels, dtype=torch.bool)
    if width < tokens:
        starts = torch.ones_like(labels[..., : tokens - width], dtype=torch.bool)
        for offset, token in enumerate(separator_ids):
            starts = starts & (labels[..., offset : offset + tokens - width] == token)
        explanation[..., width:] = starts.cumsum(-1) > 0
    return explanation if span == "explanation" else ~explanation
