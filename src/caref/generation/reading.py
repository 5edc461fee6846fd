"""What a model knows after it has read a batch of inputs, ready to write.

Encoder-decoders and decoder-only models differ in here alone: decoding and scoring see a `Reading`.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from caref.generation.virtual_tokens import VirtualTokens, base_model, virtual_tokens
from caref.models.loading import device_of

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedConfig, PreTrainedModel


class Writing(ABC):
    """A text being written to each of several inputs, token by token."""

    @abstractmethod
    def write(self, tokens: Tensor) -> Tensor:
        """Go on.

        Args:
            tokens: The next tokens of each row, shape ``(rows, tokens)``, at least one.

        Returns:
            The logits of the token after them, shape ``(rows, vocab)``.
        """

    @abstractmethod
    def keep(self, rows: Tensor) -> None:
        """Go on with these rows alone, shape ``(kept,)``."""


class Reading(ABC):
    """A batch of inputs after the model has read it; nothing that is done with it changes it.

    Attributes:
        size: The number of inputs.
        device: Where the model is.
        most_rows: How many rows may be written to at once without more memory than the batch took, or None
            where a row costs little.
    """

    size: int
    device: torch.device
    most_rows: int | None = None

    @abstractmethod
    def begin(self, rows: Sequence[int], tokens: Tensor) -> tuple[Tensor, Writing]:
        """Begin to write.

        Args:
            rows: Which inputs; one may be there several times.
            tokens: What every row begins with, shape ``(rows, tokens)``; there may be none.

        Returns:
            The logits of the token that follows, shape ``(rows, vocab)``, and how to go on.
        """

    @abstractmethod
    def logits(self, rows: Sequence[int], tokens: Tensor) -> Tensor:
        """How likely given tokens are.

        Args:
            rows: Which inputs; one may be there several times.
            tokens: Shape ``(rows, tokens)``, at least one; what stands in the last place is not looked at.

        Returns:
            At every position the logits of the token that stands there: shape ``(rows, tokens, vocab)``.
        """


def read(model: PreTrainedModel | PeftModel, inputs: Sequence[Sequence[int]]) -> Reading:
    """Let a model read a batch.

    Args:
        model: In evaluation mode, with its adapter if it has one.
        inputs: The tokens of every input, at least one each. Rows of different length do not disturb each
            other, but see `needs_equal_lengths`.
    """
    kind = EncoderReading if model.config.is_encoder_decoder else CacheReading
    return kind(base_model(model), inputs, virtual_tokens(model))


def needs_equal_lengths(model: PreTrainedModel | PeftModel) -> bool:
    """Whether only inputs of the same length can be read together.

    Padding stands between the virtual tokens and the input. Attention within a sliding window counts it
    as distance.
    """
    config: PreTrainedConfig = model.config
    if config.is_encoder_decoder or virtual_tokens(model) is None:
        return False
    types = getattr(config, "layer_types", None)
    if types:
        return any(kind != "full_attention" for kind in types)
    return getattr(config, "sliding_window", None) is not None


class EncoderReading(Reading):
    """The encoder's output."""

    def __init__(
        self, model: PreTrainedModel, inputs: Sequence[Sequence[int]], virtual: VirtualTokens | None
    ) -> None:
        self.size, self.device = len(inputs), device_of(model)
        self._model, self._virtual = model, virtual
        start = model.config.decoder_start_token_id
        self._start = model.generation_config.decoder_start_token_id if start is None else start
        ids, self._mask = _padded(inputs, self.device, left=False)
        given = {"input_ids": ids}
        if virtual is not None and virtual.before_input:
            given = {"inputs_embeds": virtual.embedded(ids)}
            self._mask = _with_ones(self._mask, before=virtual.before_input)
        encoder = model.get_encoder()
        self._encoded: Tensor = encoder(**given, attention_mask=self._mask).last_hidden_state

    def begin(self, rows: Sequence[int], tokens: Tensor) -> tuple[Tensor, Writing]:
        """Write after the decoder's start token."""
        writing = _DecoderWriting(self._model, self._encoded[rows], self._mask[rows], self._cache(len(rows)))
        return writing.write(self._started(tokens)), writing

    def logits(self, rows: Sequence[int], tokens: Tensor) -> Tensor:
        """One pass of the decoder, which keeps nothing."""
        logits: Tensor = self._model(
            encoder_outputs=BaseModelOutput(last_hidden_state=self._encoded[rows]),
            attention_mask=self._mask[rows],
            decoder_input_ids=self._started(tokens[:, :-1]),
            **({"past_key_values": self._cache(len(rows))} if self._prefixed else {"use_cache": False}),
        ).logits
        return logits

    @property
    def _prefixed(self) -> bool:
        return self._virtual is not None and self._virtual.in_cache > 0

    def _cache(self, rows: int) -> Cache:
        if self._virtual is not None and self._virtual.in_cache:
            return self._virtual.cache(rows)
        return EncoderDecoderCache(DynamicCache(), DynamicCache())

    def _started(self, tokens: Tensor) -> Tensor:
        return torch.cat([tokens.new_full((len(tokens), 1), self._start), tokens], dim=1)


class _DecoderWriting(Writing):
    """A decoder at work on an encoder's output."""

    def __init__(self, model: PreTrainedModel, encoded: Tensor, mask: Tensor, cache: Cache) -> None:
        self._model, self._encoded, self._mask, self._cache = model, encoded, mask, cache

    def write(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self._model(
            encoder_outputs=BaseModelOutput(last_hidden_state=self._encoded),
            attention_mask=self._mask,
            decoder_input_ids=tokens,
            past_key_values=self._cache,
            use_cache=True,
        ).logits
        return logits[:, -1]

    def keep(self, rows: Tensor) -> None:
        self._encoded, self._mask = self._encoded[rows], self._mask[rows]
        self._cache.batch_select_indices(rows)


class CacheReading(Reading):
    """The keys and values of a decoder-only model, padded on the left, and what it would write first."""

    def __init__(
        self, model: PreTrainedModel, inputs: Sequence[Sequence[int]], virtual: VirtualTokens | None
    ) -> None:
        self.size, self.device = len(inputs), device_of(model)
        self.most_rows = self.size
        ids, mask = _padded(inputs, self.device, left=True)
        given, cache = {"input_ids": ids}, None
        count = ids.shape[1]
        if virtual is not None and virtual.in_cache:
            mask = _with_ones(mask, before=virtual.in_cache)
            cache = virtual.cache(self.size)
        elif virtual is not None:
            mask = _with_ones(mask, before=virtual.before_input)
            given = {"inputs_embeds": virtual.embedded(ids)}
            count += virtual.before_input
        self._writing = _CacheWriting(
            model, mask, DynamicCache(config=model.config) if cache is None else cache
        )
        self._first = self._writing.forward(given, count, last=True)[:, -1]

    def begin(self, rows: Sequence[int], tokens: Tensor) -> tuple[Tensor, Writing]:
        """Write after the input's last token."""
        chosen = torch.tensor(rows, device=self.device)
        writing = self._writing.copy(chosen)
        return self._first[chosen] if tokens.shape[1] == 0 else writing.write(tokens), writing

    def logits(self, rows: Sequence[int], tokens: Tensor) -> Tensor:
        """One pass over the tokens, after the input's keys and values."""
        chosen = torch.tensor(rows, device=self.device)
        first = self._first[chosen, None]
        if tokens.shape[1] == 1:
            return first
        more = self._writing.copy(chosen).logits(tokens[:, :-1])
        return torch.cat([first, more], dim=1)


class _CacheWriting(Writing):
    """A decoder-only model at work.

    Positions count a row's own tokens, virtual ones among them, and no padding.
    """

    def __init__(self, model: PreTrainedModel, mask: Tensor, cache: Cache) -> None:
        self._model, self._mask, self._cache = model, mask, cache
        self._takes = inspect.signature(model.forward).parameters

    def write(self, tokens: Tensor) -> Tensor:
        return self.logits(tokens, last=True)[:, -1]

    def keep(self, rows: Tensor) -> None:
        self._mask = self._mask[rows]
        self._cache.batch_select_indices(rows)

    def copy(self, rows: Tensor) -> _CacheWriting:
        """The same for a choice of rows; this one stays as it is."""
        # Layers replace their tensors and never change them, so that the copies may share them.
        cache = copy.copy(self._cache)
        cache.layers = [copy.copy(layer) for layer in self._cache.layers]
        made = _CacheWriting(self._model, self._mask, cache)
        made.keep(rows)
        return made

    def logits(self, tokens: Tensor, *, last: bool = False) -> Tensor:
        """The logits of the token after each of `tokens`, or after the last one alone."""
        self._mask = _with_ones(self._mask, after=tokens.shape[1])
        return self.forward({"input_ids": tokens}, tokens.shape[1], last=last)

    def forward(self, given: dict[str, Tensor], count: int, *, last: bool) -> Tensor:
        """Go through the model with the last `count` positions of the mask."""
        options: dict[str, object] = {}
        if "position_ids" in self._takes:
            options["position_ids"] = (self._mask.cumsum(-1) - 1).clamp(min=0)[:, -count:]
        if last and "logits_to_keep" in self._takes:
            options["logits_to_keep"] = 1
        logits: Tensor = self._model(
            **given, attention_mask=self._mask, past_key_values=self._cache, use_cache=True, **options
        ).logits
        return logits


def _padded(sequences: Sequence[Sequence[int]], device: torch.device, *, left: bool) -> tuple[Tensor, Tensor]:
    """Token ids and their mask, shape ``(batch, tokens)``; what stands in the padding is never seen."""
    width = max(len(sequence) for sequence in sequences)
    ids = torch.zeros(len(sequences), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        place = slice(width - len(sequence), None) if left else slice(len(sequence))
        ids[row, place] = torch.tensor(sequence)
        mask[row, place] = 1
    return ids.to(device), mask.to(device)


def _with_ones(mask: Tensor, *, before: int = 0, after: int = 0) -> Tensor:
    rows = len(mask)
    return torch.cat([mask.new_ones(rows, before), mask, mask.new_ones(rows, after)], dim=1)
