"""BERTScore, computed as bert-score 0.3.13 did under transformers 4, in batches.

Under transformers 5 that package no longer puts RoBERTa's space before the first word, and
fails on blank texts; see `BertScorer` for what is kept and what is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tokenizers
import torch
import transformers

import caref
from caref.metrics.bertscore.batching import Pair, ordered_pairs
from caref.metrics.bertscore.cache import ScoreCache
from caref.metrics.bertscore.encoder import TextEncoder
from caref.metrics.bertscore.scoring import OnProgress, Pass
from caref.metrics.bertscore.shelf import Shelf

_NONE: Mapping[Pair, float] = MappingProxyType({})


class BertScorer:
    """BERTScore of candidates against references with one encoder.

    Every token is embedded by the encoder's hidden state after `layer` layers and compared by
    cosine. Precision is the mean over the candidate's tokens of the largest similarity to a
    token of the reference, recall the same the other way round, F1 their harmonic mean. The
    tokens that open and close a text can be a match but are not averaged over. There are no
    idf weights and no rescaling.

    Text is stripped; RoBERTa's gets one space in front, as bert-score's slow tokenizer gave
    it; what exceeds the encoder's positions is cut off. A blank text on either side gives 0.
    Where precision and recall have opposite signs F1 is 0; bert-score's formula leaves
    [-1, 1] there.

    Without a cache nothing is read or written and no call depends on an earlier one. With one,
    scores differ from those without by rounding alone, at most 1e-6 in float32: which texts are
    computed in one batch depends on what is known already, and a batch's shape decides the order
    of additions.

    Args:
        model: A directory, a hub id, or ``"offline"`` for the model of the offline extra.
            Only safetensors weights are loaded, and no code of the model's own is run.
        layer: Hidden layer, 0 (the embeddings) up to the number of layers; layers above it
            are not loaded. None takes the published one (17 for roberta-large), and the last
            for an encoder without; the fingerprint says which.
        device: A torch device; None is ``"cuda"`` where there is one, else ``"cpu"``.
        batch_tokens: Largest number of tokens in a batch, padding included; a text that is
            longer is a batch of its own. None is 1,024 on a CPU, whose caches larger ones
            leave, and 16,384 elsewhere.
        lowercase: Whether texts are put in lower case.
        cache: Where pairs and embeddings are kept on disk; may be changed at any time.

    Raises:
        CarefError: If the encoder is missing or unusable, or `layer` is out of range.

    Source:
        Zhang et al., 2020, arXiv:1904.09675.
    """

    def __init__(
        self,
        model: str | Path,
        layer: int | None = None,
        *,
        device: str | torch.device | None = None,
        batch_tokens: int | None = None,
        lowercase: bool = False,
        cache: ScoreCache | None = None,
    ) -> None:
        if batch_tokens is not None and batch_tokens < 1:
            raise ValueError(f"batch_tokens must be positive, got {batch_tokens}")
        self.lowercase = lowercase
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.batch_tokens = batch_tokens or (1024 if self.device.type == "cpu" else 16_384)
        self.cache = cache
        self.encoder = TextEncoder(model, layer, self.device)

    @property
    def layer(self) -> int:
        """The hidden layer that is compared."""
        return self.encoder.layer

    @property
    def layers(self) -> int:
        """How many layers the encoder has."""
        return self.encoder.layers

    def __str__(self) -> str:
        return f"{self.encoder.files.name}, layer {self.layer}"

    def fingerprint(self) -> dict[str, Any]:
        """Everything that decides the scores: equal fingerprints, comparable scores.

        ``encoder_sha256`` is over configuration, tokenizer and weights, so that it is the same
        for a copy of the files; ``encoder_commit`` is None outside the hub.
        """
        return {
            "encoder": self.encoder.files.name,
            "encoder_sha256": self.encoder.files.sha256(),
            "encoder_commit": self.encoder.files.commit,
            "layer": self.layer,
            "layer_source": self.encoder.layer_source,
            "layers": self.layers,
            "lowercase": self.lowercase,
            "prefix_space": self.encoder.prefix_space,
            "max_tokens": self.encoder.max_tokens,
            "idf": False,
            "rescaled": False,
            "versions": {
                "caref": caref.__version__,
                "tokenizers": tokenizers.__version__,
                "torch": torch.__version__,
                "transformers": transformers.__version__,
            },
        }

    def f1(
        self,
        candidates: Sequence[str],
        references: Sequence[Sequence[str]],
        *,
        known: Mapping[Pair, float] = _NONE,
        on_progress: OnProgress | None = None,
    ) -> list[float]:
        """F1 of each candidate against the best of its references.

        Equal texts are embedded once and equal pairs compared once. Neither the order nor the
        other texts of a call matter, but for rounding.

        Args:
            candidates: One text each.
            references: For each candidate its references. Blank ones score 0, and so does a
                candidate without any.
            known: What `pair_scores` gave for these or other texts; its pairs are not computed.
            on_progress: Called after each batch with the multiply-adds done and their total,
                those of embedding texts and of comparing pairs; what is known costs none.

        Returns:
            One number within [-1, 1] per candidate, never NaN.

        Raises:
            ValueError: If there are not as many lists of references as candidates.
            TypeError: If a candidate's references are one string.
        """
        groups = self._groups(candidates, references)
        scores = self._score(groups, known, on_progress)
        return [max((scores.get(pair, 0.0) for pair in group), default=0.0) for group in groups]

    def pair_scores(
        self,
        candidates: Sequence[str],
        references: Sequence[Sequence[str]],
        *,
        known: Mapping[Pair, float] = _NONE,
        on_progress: OnProgress | None = None,
    ) -> dict[Pair, float]:
        """F1 of every distinct pair of a candidate with one of its references, blank texts left out.

        Takes and raises what `f1` does; its `known` may be given this.

        Returns:
            (candidate, reference), stripped and in lower case where texts are put so, to F1.
        """
        return self._score(self._groups(candidates, references), known, on_progress)

    def _groups(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> list[list[Pair]]:
        """For each candidate its pairs."""
        if len(candidates) != len(references):
            raise ValueError(
                f"references must hold one list per candidate: {len(candidates)} candidates, "
                f"{len(references)} lists"
            )
        if any(isinstance(group, str) for group in references):
            raise TypeError("each candidate's references must be a list of strings, got a string")
        return [
            [(self._clean(candidate), self._clean(reference)) for reference in group]
            for candidate, group in zip(candidates, references, strict=True)
        ]

    def _clean(self, text: str) -> str:
        text = text.strip()
        return text.lower() if self.lowercase else text

    def _score(
        self, groups: Sequence[Sequence[Pair]], known: Mapping[Pair, float], on_progress: OnProgress | None
    ) -> dict[Pair, float]:
        pairs = ordered_pairs(groups)
        scores = {pair: known[pair] for pair in pairs if pair in known}
        left = [pair for pair in pairs if pair not in scores]
        shelf = self._shelf() if left else None
        if shelf is not None:
            scores |= shelf.scores(left)
            left = [pair for pair in left if pair not in scores]
        if not left:
            return scores
        found = Pass(self.encoder, left, batch_tokens=self.batch_tokens, shelf=shelf, on_progress=on_progress)
        return scores | found.scores()

    def _shelf(self) -> Shelf | None:
        if self.cache is None:
            return None
        # Texts come in the case that they are compared in, and F1 without idf and rescaling.
        told = self.fingerprint()
        deciding = ("encoder_sha256", "layer", "prefix_space", "max_tokens", "versions")
        return self.cache.shelf({**{name: told[name] for name in deciding}, "device": self.device.type})
