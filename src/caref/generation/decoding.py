"""Batched greedy decoding, from inputs that the model has read already."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from transformers import GenerationConfig

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel

    from caref.generation.reading import Reading


@dataclass(frozen=True, slots=True)
class Decoded:
    """One row's generation.

    Attributes:
        tokens: New tokens: neither start, prefix, end nor padding among them.
        log_probs: Each token's log-probability in nats, the end token's after them where there is one.
    """

    tokens: list[int]
    log_probs: list[float]


def greedy_config(
    model: PreTrainedModel | PeftModel, max_new_tokens: int, *, ends: Sequence[int] = ()
) -> GenerationConfig:
    """Greedy decoding with the model's own special tokens and none of its other habits.

    Args:
        model: Whose tokens.
        max_new_tokens: Decoding ends here at the latest.
        ends: Tokens that end a text too, next to those that the model names.
    """
    own, config = model.generation_config, model.config
    start = config.decoder_start_token_id if config.is_encoder_decoder else None
    end = own.eos_token_id
    padding = own.pad_token_id
    own_ends = config.eos_token_id if end is None else end
    all_ends = [*(own_ends if isinstance(own_ends, list) else [own_ends]), *ends]
    return GenerationConfig(
        max_new_tokens=max_new_tokens,
        do_sample=False,
        num_beams=1,
        decoder_start_token_id=own.decoder_start_token_id if start is None else start,
        eos_token_id=list(dict.fromkeys(token for token in all_ends if token is not None)),
        pad_token_id=config.pad_token_id if padding is None else padding,
    )


@torch.inference_mode()
def decode(
    reading: Reading,
    config: GenerationConfig,
    *,
    prefixes: list[list[int]] | None = None,
) -> list[Decoded]:
    """Decode every row greedily.

    Args:
        reading: Of the inputs; it can be used again.
        config: From `greedy_config`.
        prefixes: Tokens that each row's text is made to begin with, or None. Rows are decoded together
            with those of the same prefix length, so that none of these is padded.

    Returns:
        One generation per row.
    """
    if prefixes is None:
        prefixes = [[] for _ in range(reading.size)]
    by_length: dict[int, list[int]] = defaultdict(list)
    for row, prefix in enumerate(prefixes):
        by_length[len(prefix)].append(row)
    results: dict[int, Decoded] = {}
    for rows in by_length.values():
        decoded = _decode_rows(reading, config, rows, [prefixes[row] for row in rows])
        results.update(zip(rows, decoded, strict=True))
    return [results[row] for row in range(len(prefixes))]


def _decode_rows(
    reading: Reading, config: GenerationConfig, rows: list[int], prefixes: list[list[int]]
) -> list[Decoded]:
    """Greedy decoding that drops each row when it ends, so that one long row does not hold up the rest.

    transformers' own `generate` keeps every row until the last one ends; a contract test holds this
    loop to its output.
    """
    ends = torch.tensor(config.eos_token_id, device=reading.device)
    tokens: list[list[int]] = [[] for _ in rows]
    log_probs: list[list[float]] = [[] for _ in rows]
    alive = list(range(len(rows)))
    given = torch.tensor(prefixes, dtype=torch.long, device=reading.device)
    logits, writing = reading.begin(rows, given)
    while True:
        best = logits.max(dim=-1)
        scores = best.values.float() - logits.float().logsumexp(-1)
        for row, token, score in zip(alive, best.indices.tolist(), scores.tolist(), strict=True):
            tokens[row].append(token)
            log_probs[row].append(score)
        going_on = ~torch.isin(best.indices, ends)
        if len(tokens[alive[0]]) == config.max_new_tokens or not going_on.any():
            break
        if not going_on.all():
            kept = going_on.nonzero().squeeze(-1)
            alive = [alive[index] for index in kept.tolist()]
            writing.keep(kept)
        logits = writing.write(best.indices[going_on, None])
    stops = set(ends.flatten().tolist())
    return [
        Decoded(row[:-1] if row[-1] in stops else row, scores)
        for row, scores in zip(tokens, log_probs, strict=True)
    ]
