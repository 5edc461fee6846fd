"""Batched greedy decoding of encoder-decoder models, from an encoder pass already made."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache, GenerationConfig
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
    """Greedy decoding that drops each row when it ends, so that one long row does not hold up the rest.

    transformers' own `generate` keeps every row until the last one ends; a contract test holds this
    loop to its output.
    """
    ends = torch.tensor(config.eos_token_id, device=encoded.device)
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    tokens: list[list[int]] = [[] for _ in given]
    log_probs: list[list[float]] = [[] for _ in given]
    alive = list(range(len(given)))
    step_input = torch.tensor(given, device=encoded.device)
    for _ in range(config.max_new_tokens):
        logits = model(
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
            attention_mask=attention_mask,
            decoder_input_ids=step_input,
            past_key_values=cache,
            use_cache=True,
        ).logits[:, -1]
        best = logits.max(dim=-1)
        scores = best.values.float() - logits.float().logsumexp(-1)
        for row, token, score in zip(alive, best.indices.tolist(), scores.tolist(), strict=True):
            tokens[row].append(token)
            log_probs[row].append(score)
        going_on = ~torch.isin(best.indices, ends)
        step_input = best.indices[going_on, None]
        if not going_on.all():
            kept = going_on.nonzero().squeeze(-1)
            alive = [alive[index] for index in kept.tolist()]
            if not alive:
                break
            encoded, attention_mask = encoded[kept], attention_mask[kept]
            cache.batch_select_indices(kept)
    stops = set(ends.flatten().tolist())
    return [
        Decoded(row[:-1] if row[-1] in stops else row, scores)
        for row, scores in zip(tokens, log_probs, strict=True)
    ]
