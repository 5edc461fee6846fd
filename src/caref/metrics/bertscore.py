"""BERTScore, computed as bert-score 0.3.13 did under transformers 4, in batches.

Under transformers 5 that package no longer puts RoBERTa's space before the first word, and
fails on blank texts; see `BertScorer` for what is kept and what is not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import tokenizers
import torch
import transformers
from torch import Tensor
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

import caref
from caref.errors import CarefError
from caref.metrics.encoders import EncoderFiles, find_encoder

Item = TypeVar("Item")
Tokens = tuple[int, ...]
Pair = tuple[str, str]  # candidate, reference

_HELD_BYTES = 2**29  # of embeddings at a time: 131,072 tokens of roberta-large

# Those whose tokenizer in transformers 4 took the leading space; in transformers 5 others
# (Longformer, BART) share RobertaTokenizer's class, so that the class does not tell.
_PREFIX_SPACE_TYPES = frozenset({"roberta", "roberta-prelayernorm", "data2vec-text"})


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
    ) -> None:
        if batch_tokens is not None and batch_tokens < 1:
            raise ValueError(f"batch_tokens must be positive, got {batch_tokens}")
        self.lowercase = lowercase
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.batch_tokens = batch_tokens or (1024 if self.device.type == "cpu" else 16_384)
        self._files = find_encoder(model)
        config = _read_config(self._files)
        self.layers: int = config.num_hidden_layers
        self.layer, self._layer_source = _choose_layer(layer, self._files, self.layers)
        config.num_hidden_layers = self.layer
        self._tokenizer, self._model = _load(self._files, config)
        self._model.to(self.device)
        self._prefix_space = config.model_type in _PREFIX_SPACE_TYPES and isinstance(
            self._tokenizer, transformers.RobertaTokenizer
        )
        self._max_tokens = _max_tokens(self._tokenizer, self._model)

    def __str__(self) -> str:
        return f"{self._files.name}, layer {self.layer}"

    def fingerprint(self) -> dict[str, Any]:
        """Everything that decides the scores: equal fingerprints, comparable scores.

        ``encoder_sha256`` is over configuration, tokenizer and weights, so that it is the same
        for a copy of the files; ``encoder_commit`` is None outside the hub.
        """
        return {
            "encoder": self._files.name,
            "encoder_sha256": self._files.sha256(),
            "encoder_commit": self._files.commit,
            "layer": self.layer,
            "layer_source": self._layer_source,
            "layers": self.layers,
            "lowercase": self.lowercase,
            "prefix_space": self._prefix_space,
            "max_tokens": self._max_tokens,
            "idf": False,
            "rescaled": False,
            "versions": {
                "caref": caref.__version__,
                "tokenizers": tokenizers.__version__,
                "torch": torch.__version__,
                "transformers": transformers.__version__,
            },
        }

    def f1(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
        """F1 of each candidate against the best of its references.

        Equal texts are embedded once and equal pairs compared once. Neither the order nor the
        other texts of a call matter, but for rounding.

        Args:
            candidates: One text each.
            references: For each candidate its references. Blank ones score 0, and so does a
                candidate without any.

        Returns:
            One number within [-1, 1] per candidate, never NaN.

        Raises:
            ValueError: If there are not as many lists of references as candidates.
            TypeError: If a candidate's references are one string.
        """
        if len(candidates) != len(references):
            raise ValueError(
                f"references must hold one list per candidate: {len(candidates)} candidates, "
                f"{len(references)} lists"
            )
        if any(isinstance(group, str) for group in references):
            raise TypeError("each candidate's references must be a list of strings, got a string")
        groups = [
            [(self._clean(candidate), self._clean(reference)) for reference in group]
            for candidate, group in zip(candidates, references, strict=True)
        ]
        scores = self._score({pair for group in groups for pair in group if all(pair)})
        return [max((scores.get(pair, 0.0) for pair in group), default=0.0) for group in groups]

    def _clean(self, text: str) -> str:
        text = text.strip()
        return text.lower() if self.lowercase else text

    def _score(self, pairs: set[Pair]) -> dict[Pair, float]:
        scores: dict[Pair, float] = {}
        tokens = self._tokenize(sorted({text for pair in pairs for text in pair}))
        held_tokens = _HELD_BYTES // (4 * self._model.config.hidden_size)
        for block in _blocks(sorted(pairs), tokens, held_tokens):
            texts = sorted({text for pair in block for text in pair})
            vectors = dict(zip(texts, self._embed([tokens[text] for text in texts]), strict=True))
            for batch in _batches(
                block, [len(tokens[c]) + len(tokens[r]) for c, r in block], self.batch_tokens
            ):
                f1 = self._compare(
                    [vectors[candidate] for candidate, _ in batch],
                    [vectors[reference] for _, reference in batch],
                    [self._counted(tokens[candidate]) for candidate, _ in batch],
                    [self._counted(tokens[reference]) for _, reference in batch],
                )
                scores.update(zip(batch, f1, strict=True))
        return scores

    def _tokenize(self, texts: list[str]) -> dict[str, Tokens]:
        if not texts:
            return {}
        encoded = self._tokenizer(
            [" " + text for text in texts] if self._prefix_space else texts,
            truncation=self._max_tokens is not None,
            max_length=self._max_tokens,
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]
        return {text: tuple(ids) for text, ids in zip(texts, encoded, strict=True)}

    def _counted(self, tokens: Tokens) -> Tensor:
        """1 for tokens that are averaged over, 0 for those that open or close a text."""
        outer = (self._tokenizer.cls_token_id, self._tokenizer.sep_token_id)
        return torch.tensor([float(token not in outer) for token in tokens], device=self.device)

    @torch.inference_mode()
    def _embed(self, sequences: Sequence[Tokens]) -> list[Tensor]:
        """Unit vectors, shape ``(tokens, hidden)`` and float32, of each of `sequences`."""
        embedded: dict[Tokens, Tensor] = {}
        distinct = sorted(set(sequences))
        for batch in _batches(distinct, [len(sequence) for sequence in distinct], self.batch_tokens):
            ids = pad_sequence(
                [torch.tensor(sequence) for sequence in batch],
                batch_first=True,
                padding_value=self._tokenizer.pad_token_id,
            )
            mask = _real(batch, ids.shape[1])
            hidden = self._model(ids.to(self.device), attention_mask=mask.long().to(self.device))[0]
            for sequence, vectors in zip(batch, normalize(hidden.float(), dim=-1), strict=True):
                embedded[sequence] = vectors[: len(sequence)].clone()  # a view would keep the padding
        return [embedded[sequence] for sequence in sequences]

    @staticmethod
    @torch.inference_mode()
    def _compare(
        candidates: list[Tensor],
        references: list[Tensor],
        counted_candidates: list[Tensor],
        counted_references: list[Tensor],
    ) -> list[float]:
        candidate = pad_sequence(candidates, batch_first=True)
        reference = pad_sequence(references, batch_first=True)
        similarity = candidate @ reference.transpose(1, 2)  # pair, candidate tokens, reference tokens
        candidate_pad = ~_real(candidates, candidate.shape[1]).to(similarity.device)
        reference_pad = ~_real(references, reference.shape[1]).to(similarity.device)
        best_of_reference = similarity.masked_fill(reference_pad[:, None, :], -torch.inf).amax(dim=2)
        best_of_candidate = similarity.masked_fill(candidate_pad[:, :, None], -torch.inf).amax(dim=1)
        precision = _weighted_mean(best_of_reference, pad_sequence(counted_candidates, batch_first=True))
        recall = _weighted_mean(best_of_candidate, pad_sequence(counted_references, batch_first=True))
        harmonic = 2 * precision * recall / (precision + recall)
        f1 = torch.where(precision * recall > 0, harmonic, 0.0)
        return f1.clamp(-1, 1).tolist()


def _read_config(files: EncoderFiles) -> Any:
    try:
        config = transformers.AutoConfig.from_pretrained(
            files.directory, trust_remote_code=False, local_files_only=True
        )
    except (OSError, ValueError, KeyError) as error:
        raise CarefError(
            f"encoder {files.name!r}: its config.json cannot be used: {_first_line(error)}"
        ) from error
    if config.is_encoder_decoder or not hasattr(config, "num_hidden_layers"):
        raise CarefError(
            f"encoder {files.name!r} is of type {config.model_type!r}; expected an encoder such as "
            "bert, roberta or deberta"
        )
    return config


def _choose_layer(layer: int | None, files: EncoderFiles, layers: int) -> tuple[int, str]:
    if layer is not None:
        chosen, source = layer, "given"
    elif files.published_layer is not None:
        chosen, source = files.published_layer, "published"
    else:
        chosen, source = layers, "last"
    if not 0 <= chosen <= layers:
        raise CarefError(
            f"layer must be within 0..{layers} for encoder {files.name!r}, got {chosen} ({source})"
        )
    return chosen, source


def _load(files: EncoderFiles, config: Any) -> tuple[Any, Any]:
    try:
        with _quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                files.directory, trust_remote_code=False, local_files_only=True
            )
            model, report = transformers.AutoModel.from_pretrained(
                files.directory,
                config=config,
                dtype=torch.float32,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
            )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise CarefError(f"encoder {files.name!r} cannot be loaded: {_first_line(error)}") from error
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)  # the pooler is not used
    if missing:
        raise CarefError(f"encoder {files.name!r}: its weights lack {missing[0]} and {len(missing) - 1} more")
    return tokenizer, model.eval()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the report of unused weights: those of the layers above are meant to be unused."""
    logging = transformers.utils.logging
    verbosity, progress = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if progress:
            logging.enable_progress_bar()


def _max_tokens(tokenizer: Any, model: Any) -> int | None:
    """The smaller of the tokenizer's limit and the model's positions; None where neither has one."""
    positions = getattr(model.config, "max_position_embeddings", None)
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    if isinstance(table, torch.nn.Embedding):  # RoBERTa's positions start after the padding's
        positions = table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
    limit = tokenizer.model_max_length if tokenizer.model_max_length < 10**9 else None  # 1e30 means none
    return min((number for number in (limit, positions) if number is not None), default=None)


def _blocks(pairs: Sequence[Pair], tokens: dict[str, Tokens], limit: int) -> Iterator[list[Pair]]:
    """Consecutive pairs whose distinct texts have at most `limit` tokens together, or one pair."""
    block: list[Pair] = []
    texts: set[str] = set()
    size = 0
    for pair in pairs:
        added = sum(len(tokens[text]) for text in set(pair) - texts)
        if block and size + added > limit:
            yield block
            block, texts, size = [], set(), 0
            added = sum(len(tokens[text]) for text in set(pair))
        block.append(pair)
        texts.update(pair)
        size += added
    if block:
        yield block


def _batches(items: Sequence[Item], sizes: Sequence[int], limit: int) -> Iterator[list[Item]]:
    """Items of similar size, as many as fit in `limit` when padded to the largest; at least one."""
    batch: list[Item] = []
    for index in sorted(range(len(items)), key=sizes.__getitem__):
        if batch and (len(batch) + 1) * sizes[index] > limit:
            yield batch
            batch = []
        batch.append(items[index])
    if batch:
        yield batch


def _real(sequences: Sequence[Tokens] | Sequence[Tensor], width: int) -> Tensor:
    """Which positions are not padding, shape ``(len(sequences), width)``."""
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    return torch.arange(width) < lengths[:, None]


def _weighted_mean(values: Tensor, weights: Tensor) -> Tensor:
    return (values * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
