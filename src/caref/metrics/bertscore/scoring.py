"""One pass of an encoder over pairs of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from caref.metrics.bertscore.batching import Pair, batches, blocks
from caref.metrics.bertscore.encoder import TextEncoder, Tokens
from caref.metrics.bertscore.shelf import Shelf
from caref.metrics.bertscore.similarity import Embedded, f1_scores

OnProgress = Callable[[int, int], None]
"""Told how many multiply-adds are done, and of how many: the share that is done is one of time."""

_HELD_BYTES = 2**29  # of embeddings at a time: 131,072 tokens of roberta-large


class Pass:
    """Pairs of which nothing is known yet, block after block: embedded, compared, stored.

    Args:
        encoder: Embeds the texts.
        pairs: Distinct, in the order in which they are grouped into blocks.
        batch_tokens: As in `BertScorer`.
        shelf: Where embeddings are looked up first, and everything is stored.
        on_progress: As in `BertScorer.f1`.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        pairs: Sequence[Pair],
        *,
        batch_tokens: int,
        shelf: Shelf | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.encoder, self.pairs, self.batch_tokens, self.shelf = encoder, pairs, batch_tokens, shelf
        self.tokens = self.encoder.tokenize(sorted({text for pair in pairs for text in pair}))
        self.embedded: dict[Tokens, Embedded] = {}
        self.on_progress = on_progress
        self.missing = {
            tokens for tokens in self.tokens.values() if shelf is None or not shelf.has_vectors(tokens)
        }
        self.done = 0
        self.total = sum(map(self._embedding_work, self.missing)) + sum(map(self._comparing_work, pairs))

    def scores(self) -> dict[Pair, float]:
        """F1 of every pair. What is done when an exception ends the pass is stored."""
        scores: dict[Pair, float] = {}
        self._advance(0)
        sizes = {text: len(tokens) for text, tokens in self.tokens.items()}
        try:
            for block, kept in blocks(self.pairs, sizes, _HELD_BYTES // (4 * self.encoder.hidden_size)):
                self._embed({self.tokens[text] for pair in block for text in pair})
                found = self._compare(sorted(block))
                scores |= found
                if self.shelf is not None:
                    self.shelf.add_scores(found)
                later = {self.tokens[text] for text in kept}
                self.embedded = {tokens: each for tokens, each in self.embedded.items() if tokens in later}
        finally:
            if self.shelf is not None:
                self.shelf.flush()
        return scores

    def _embed(self, needed: set[Tokens]) -> None:
        """Make sure that all of `needed` are embedded."""
        needed = needed - self.embedded.keys()
        if self.shelf is not None:
            # A copy: what was read is not writable, and torch warns of that.
            for tokens, array in self.shelf.vectors(needed).items():
                self._keep(tokens, torch.from_numpy(array.copy()).to(self.encoder.device))
        distinct = sorted(needed - self.embedded.keys())
        for batch in batches(distinct, [len(tokens) for tokens in distinct], self.batch_tokens):
            vectors = self.encoder.embed(batch)
            for tokens, each in zip(batch, vectors, strict=True):
                self._keep(tokens, each)
            if self.shelf is not None:
                arrays = (each.cpu().numpy() for each in vectors)
                self.shelf.add_vectors(dict(zip(batch, arrays, strict=True)))
            self._advance(sum(self._embedding_work(tokens) for tokens in batch if tokens in self.missing))
            self.missing.difference_update(batch)

    def _keep(self, tokens: Tokens, vectors: Tensor) -> None:
        self.embedded[tokens] = Embedded(vectors, self.encoder.counted(tokens))

    def _compare(self, pairs: list[Pair]) -> dict[Pair, float]:
        scores: dict[Pair, float] = {}
        sizes = [len(self.tokens[candidate]) + len(self.tokens[reference]) for candidate, reference in pairs]
        for batch in batches(pairs, sizes, self.batch_tokens):
            candidates = [self.embedded[self.tokens[candidate]] for candidate, _ in batch]
            references = [self.embedded[self.tokens[reference]] for _, reference in batch]
            scores.update(zip(batch, f1_scores(candidates, references), strict=True))
            self._advance(sum(map(self._comparing_work, batch)))
        return scores

    def _embedding_work(self, tokens: Tokens) -> int:
        return len(tokens) * self.encoder.parameters_per_token

    def _comparing_work(self, pair: Pair) -> int:
        return len(self.tokens[pair[0]]) * len(self.tokens[pair[1]]) * self.encoder.hidden_size

    def _advance(self, work: int) -> None:
        self.done += work
        if self.on_progress is not None:
            self.on_progress(self.done, self.total)
