"""Batched greedy decoding of encoder-decoder models, from an encoder pass already made."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList
from transformers.modeling_outputs import BaseModelOutput

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True)
class Decoded:
    """One row's generation.

    Attributes:
        tokens: New tokens: neither start, prefix, end nor padding among them.
        log_probs: Each token's log-probability in nats, the end token's after them where there is one.
    """

    tokens: list[int]
    log_probs: list[float]


def greedy_config(model: PreTrainedModel, max_new_tokens: int) -> GenerationConfig:
    """Greedy decoding with the model's own special tokens and none of its other habits."""
    own, config = model.generation_config, model.config
    start = own.decoder_start_token_id
    end = own.eos_token_id
    padding = own.pad_token_id
    return GenerationConfig(
        max_new_tokens=max_new_tokens,
        do_sample=False,
        num_beams=1,
        decoder_start_token_id=config.decoder_start_token_id if start is None else start,
        eos_token_id=config.eos_token_id if end is None else end,
        pad_token_id=config.pad_token_id if padding is None else padding,
    )


@torch.inference_mode()
def decode(
    model: PreTrainedModel,
    encoded: Tensor,
    attention_mask: Tensor,
    config: GenerationConfig,
    *,
    prefixes: list[list[int]] | None = None,
) -> list[Decoded]:
    """Decode every row greedily.

    Args:
        model: In evaluation mode.
        encoded: The encoder's output, shape ``(batch, tokens, hidden)``.
        attention_mask: Of the input, shape ``(batch, tokens)``.
        config: From `greedy_config`.
        prefixes: Tokens that each row's decoder is made to begin with, or None. Rows are decoded
            together with those of the same prefix length, so that none is padded on the left.

    Returns:
        One generation per row.
    """
    if prefixes is None:
        prefixes = [[] for _ in range(len(encoded))]
    by_length: dict[int, list[int]] = defaultdict(list)
    for row, prefix in enumerate(prefixes):
        by_length[len(prefix)].append(row)
    results: dict[int, Decoded] = {}
    for rows in by_length.values():
        given = [[config.decoder_start_token_id, *prefixes[row]] for row in rows]
        decoded = _decode_rows(model, encoded[rows], attention_mask[rows], config, given)
        results.update(zip(rows, decoded, strict=True))
    return [results[row] for row in range(len(prefixes))]


def _decode_rows(
    model: PreTrainedModel,
    encoded: Tensor,
    attention_mask: Tensor,
    config: GenerationConfig,
    given: list[list[int]],
) -> list[Decoded]:
    recorder = _LogProbRecorder()
    sequences = model.generate(
        encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
        attention_mask=attention_mask,
        decoder_input_ids=torch.tensor(given, device=encoded.device),
        generation_config=config,
        logits_processor=LogitsProcessorList([recorder]),
    )
    new = sequences[:, len(given[0]) :].tolist()
    log_probs = torch.stack(recorder.steps, dim=1).tolist() if recorder.steps else [[] for _ in new]
    ends = {config.eos_token_id} if isinstance(config.eos_token_id, int) else set(config.eos_token_id)
    return [_until_end(row, values, ends) for row, values in zip(new, log_probs, strict=True)]


class _LogProbRecorder(LogitsProcessor):
    """Notes the log-probability of the likeliest token at every step, which greedy decoding takes."""

    def __init__(self) -> None:
        self.steps: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        wide = scores.float()
        self.steps.append(wide.amax(-1) - wide.logsumexp(-1))
        return scores


def _until_end(tokens: list[int], log_probs: list[float], ends: set[int]) -> Decoded:
    for position, token in enumerate(tokens):
        if token in ends:
            return Decoded(tokens[:position], log_probs[: position + 1])
    return Decoded(tokens, log_probs[: len(tokens)])
