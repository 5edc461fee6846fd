"""BERTScore's F1 of pairs of embedded texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


class Embedded(NamedTuple):
    """An embedded text.

    Attributes:
        vectors: A unit vector per token, shape ``(tokens, hidden)``.
        counted: 1 for tokens that are averaged over, 0 for those that open or close the text; shape
            ``(tokens,)``.
    """

    vectors: Tensor
    counted: Tensor


@torch.inference_mode()
def f1_scores(candidates: Sequence[Embedded], references: Sequence[Embedded]) -> list[float]:
    """F1 of each candidate and the reference at its place, in one batch.

    Returns:
        One number within [-1, 1] per pair; 0 where precision and recall have opposite signs, or nothing
        is counted on a side.

    Example:
        >>> one = Embedded(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([1.0, 1.0]))
        >>> other = Embedded(torch.tensor([[0.0, 1.0]]), torch.tensor([1.0]))
        >>> f1_scores([one], [other])  # P = 1/2, R = 1
        [0.6666666865348816]
    """
    candidate = pad_sequence([each.vectors for each in candidates], batch_first=True)
    reference = pad_sequence([each.vectors for each in references], batch_first=True)
    similarity = candidate @ reference.transpose(1, 2)  # pair, candidate tokens, reference tokens
    candidate_pad = ~real_tokens([len(each.vectors) for each in candidates]).to(similarity.device)
    reference_pad = ~real_tokens([len(each.vectors) for each in references]).to(similarity.device)
    best_of_reference = similarity.masked_fill(reference_pad[:, None, :], -torch.inf).amax(dim=2)
    best_of_candidate = similarity.masked_fill(candidate_pad[:, :, None], -torch.inf).amax(dim=1)
    precision = _weighted_mean(best_of_reference, [each.counted for each in candidates])
    recall = _weighted_mean(best_of_candidate, [each.counted for each in references])
    harmonic = 2 * precision * recall / (precision + recall)
    f1 = torch.where(precision * recall > 0, harmonic, 0.0)
    return f1.clamp(-1, 1).tolist()


def real_tokens(lengths: Sequence[int]) -> Tensor:
    """Which positions are not padding when texts are padded to the longest, shape ``(texts, longest)``.

    Example:
        >>> real_tokens([1, 2])
        tensor([[ True, False],
                [ True,  True]])
    """
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def _weighted_mean(values: Tensor, weights: list[Tensor]) -> Tensor:
    weight = pad_sequence(weights, batch_first=True)
    return (values * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1)
