"""How likely the model finds given answers: all candidates of a batch at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from caref.generation.reading import Reading

IGNORED = -100


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """The log-probability of one answer's tokens, in nats.

    Attributes:
        log_prob_sum: Over its tokens, the separator's included.
        log_prob_mean: The same divided by their number.
    """

    log_prob_sum: float
    log_prob_mean: float


@torch.inference_mode()
def score_answers(
    reading: Reading,
    answers: Sequence[Sequence[Sequence[int]]],
    *,
    max_tokens: int = 1024,
) -> list[list[AnswerScore]]:
    """Score several answers to every input of a batch, which was read once.

    Args:
        reading: Of the inputs; it can be used again.
        answers: For every row of the batch its answers, each a list of at least one token.
        max_tokens: Answer tokens that go through the model at once, padding included; bounds the
            memory of the logits.

    Returns:
        For every row the scores of its answers, in their order.
    """
    flat = [(row, list(tokens)) for row, row_answers in enumerate(answers) for tokens in row_answers]
    scores: dict[int, AnswerScore] = {}
    for part in _parts([len(tokens) for _, tokens in flat], max_tokens, reading.most_rows):
        labels = _padded([flat[index][1] for index in part], reading.device)
        logits = reading.logits([flat[index][0] for index in part], labels.clamp(min=0))
        kept = labels != IGNORED
        chosen = logits.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1).float()
        log_probs = (chosen - logits.float().logsumexp(-1)) * kept
        counts = kept.sum(-1)
        for index, total, count in zip(part, log_probs.sum(-1).tolist(), counts.tolist(), strict=True):
            scores[index] = AnswerScore(total, total / count)
    ordered = iter(range(len(flat)))
    return [[scores[next(ordered)] for _ in row_answers] for row_answers in answers]


def _parts(lengths: list[int], max_tokens: int, most_rows: int | None) -> Iterator[list[int]]:
    """Indices of answers of similar length, as many at once as fit into `max_tokens` with padding."""
    part: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if part and (lengths[index] * (len(part) + 1) > max_tokens or len(part) == most_rows):
            yield part
            part = []
        part.append(index)
    if part:
        yield part


def _padded(sequences: list[list[int]], device: torch.device) -> Tensor:
    width = max(len(sequence) for sequence in sequences)
    return torch.tensor(
        [[*sequence, *[IGNORED] * (width - len(sequence))] for sequence in sequences], device=device
    )
