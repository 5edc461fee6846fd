"""An encoder that is loaded: texts to tokens, tokens to unit vectors of one hidden layer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

from caref.errors import CarefError
from caref.metrics.bertscore.similarity import real_tokens
from caref.metrics.encoders import EncoderFiles, find_encoder

Tokens = tuple[int, ...]

# Those whose tokenizer in transformers 4 took the leading space; in transformers 5 others
# (Longformer, BART) share RobertaTokenizer's class, so that the class does not tell.
_PREFIX_SPACE_TYPES = frozenset({"roberta", "roberta-prelayernorm", "data2vec-text"})


class TextEncoder:
    """A hidden layer of an encoder as the embedding of a text's tokens.

    Args:
        model: As `find_encoder` takes it.
        layer: Hidden layer, 0 (the embeddings) up to the number of layers; those above are not loaded.
            None takes the published one, and the last for an encoder without.
        device: Where it computes.

    Attributes:
        files: The encoder's files.
        layer: The hidden layer.
        layer_source: Where the layer is from: ``"given"``, ``"published"`` or ``"last"``.
        layers: How many the encoder has.
        hidden_size: Length of a vector.
        prefix_space: Whether a text gets one space in front, as RoBERTa's does.
        max_tokens: Where a text is cut; None is nowhere.
        parameters_per_token: Parameters of the layers that run, each multiplied once for a token.

    Raises:
        CarefError: If the encoder is missing or unusable, or `layer` is out of range.
    """

    def __init__(self, model: str | Path, layer: int | None, device: torch.device) -> None:
        self.device = device
        self.files = find_encoder(model)
        config = _read_config(self.files)
        self.layers: int = config.num_hidden_layers
        self.layer, self.layer_source = _choose_layer(layer, self.files, self.layers)
        config.num_hidden_layers = self.layer
        self.tokenizer, self.model = _load(self.files, config)
        self.model.to(device)
        self.hidden_size: int = config.hidden_size
        self.prefix_space = config.model_type in _PREFIX_SPACE_TYPES and isinstance(
            self.tokenizer, transformers.RobertaTokenizer
        )
        self.max_tokens = _max_tokens(self.tokenizer, self.model)
        self.parameters_per_token: int = sum(
            parameter.numel()
            for name, parameter in self.model.named_parameters()
            if "embeddings" not in name and "pooler" not in name
        )

    def tokenize(self, texts: Sequence[str]) -> dict[str, Tokens]:
        """The tokens of each text, with those that open and close it."""
        if not texts:
            return {}
        encoded = self.tokenizer(
            [" " + text for text in texts] if self.prefix_space else list(texts),
            truncation=self.max_tokens is not None,
            max_length=self.max_tokens,
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]
        return {text: tuple(ids) for text, ids in zip(texts, encoded, strict=True)}

    def counted(self, tokens: Tokens) -> Tensor:
        """1 for tokens that are averaged over, 0 for those that open or close a text."""
        outer = (self.tokenizer.cls_token_id, self.tokenizer.sep_token_id)
        return torch.tensor([float(token not in outer) for token in tokens], device=self.device)

    @torch.inference_mode()
    def embed(self, batch: Sequence[Tokens]) -> list[Tensor]:
        """Unit vectors, shape ``(tokens, hidden)`` and float32, of each text of one batch."""
        ids = pad_sequence(
            [torch.tensor(tokens) for tokens in batch],
            batch_first=True,
            padding_value=self.tokenizer.pad_token_id,
        )
        mask = real_tokens([len(tokens) for tokens in batch])
        hidden = self.model(ids.to(self.device), attention_mask=mask.long().to(self.device))[0]
        vectors = normalize(hidden.float(), dim=-1)
        # A view would keep the padding.
        return [each[: len(tokens)].clone() for tokens, each in zip(batch, vectors, strict=True)]


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


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
