"""Loading models and tokenizers: safetensors only, no code from a repository unless it is asked for."""

from __future__ import annotations

import contextlib
import copy
import importlib.resources
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from caref.errors import CarefError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase


PACKAGED = {"starter": ("caref.starter", "model")}
"""Models that come with the package: name to the package and the folder in it."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model by path or hub id, and whether code of its own may run.

    Attributes:
        name: A directory, a ``config.json`` (for counting only), a hub id, or ``starter``, the small model
            that comes with the package (a folder of that name is ``./starter``).
        trust_remote_code: Allow code from the model's repository to run. Off by default.
    """

    name: str
    trust_remote_code: bool = False

    @property
    def location(self) -> str:
        """What transformers is given: the name, or the folder of a model that comes with the package."""
        if self.name not in PACKAGED:
            return self.name
        package, folder = PACKAGED[self.name]
        return str(importlib.resources.files(package) / folder)

    @property
    def kind(self) -> Literal["packaged", "folder", "hub"]:
        """Where it comes from: with caref, from a folder here, or from the hub."""
        if self.name in PACKAGED:
            return "packaged"
        return "folder" if Path(self.name).exists() else "hub"

    @property
    def short_name(self) -> str:
        """The last part of the path or hub id."""
        if self.name in PACKAGED:
            return self.name
        path = Path(self.name)
        return (
            (path.parent if path.name == "config.json" else path).resolve().name
            if path.exists()
            else path.name
        )


def load_config(source: ModelSource) -> PreTrainedConfig:
    """Read a model's configuration.

    Raises:
        CarefError: If there is none at that path or hub id.
    """
    from transformers import AutoConfig

    with _told_plainly(source):
        return AutoConfig.from_pretrained(source.location, trust_remote_code=source.trust_remote_code)


def load_tokenizer(source: ModelSource) -> PreTrainedTokenizerBase:
    """Load the tokenizer that lies beside the model.

    One without a padding token pads with its end token: masks and labels hide what is padded.

    Raises:
        CarefError: If there is none, or it has no end token.
    """
    from transformers import AutoTokenizer

    with _told_plainly(source):
        tokenizer = AutoTokenizer.from_pretrained(source.location, trust_remote_code=source.trust_remote_code)
    if tokenizer.eos_token is None:
        raise CarefError(f"the tokenizer of {source.name} has no eos_token; set one and save it")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(source: ModelSource) -> PreTrainedModel:
    """Load a language model's weights in float32; lower precision is the Trainer's autocast.

    Raises:
        CarefError: If there is no such model, it is neither an encoder-decoder nor decoder-only, or its
            weights are not all there in safetensors format.
    """
    import torch

    loader = model_class(load_config(source))
    with _told_plainly(source), quiet_transformers():
        model, loaded = loader.from_pretrained(
            source.location,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=source.trust_remote_code,
            output_loading_info=True,
        )
    # transformers would go on with random ones.
    if missing := sorted(loaded["missing_keys"]):
        raise CarefError(f"{source.name} lacks {len(missing)} weights of its architecture: {missing[0]}, ...")
    return model


def empty_model(config: PreTrainedConfig) -> PreTrainedModel:
    """Build a model on the meta device: names and shapes, no weights and no memory.

    T5's output layer is untied where the published configuration says so. Transformers 5 ties it
    whenever a model is built from a configuration, and keeps the published choice in
    ``scale_decoder_outputs`` alone.
    """
    import torch

    loader = model_class(config)
    with torch.device("meta"), quiet_transformers():
        model = loader.from_config(copy.deepcopy(config))
        if getattr(config, "scale_decoder_outputs", True) is False:
            untie_output_layer(model)
    return model


def untie_output_layer(model: PreTrainedModel) -> None:
    """Give a model built from a configuration an output matrix of its own, freshly initialised."""
    import torch

    head = model.get_output_embeddings()
    weight = torch.empty_like(head.weight)
    if not weight.is_meta:
        torch.nn.init.normal_(weight, std=head.weight.std().item())
    head.weight = torch.nn.Parameter(weight)
    model.config.tie_word_embeddings = False


def model_class(config: PreTrainedConfig) -> Any:
    """The class that loads a model of this kind: `AutoModelForSeq2SeqLM` or `AutoModelForCausalLM`.

    Raises:
        CarefError: If the model only reads, as BERT alone, or is no language model.
    """
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    if config.is_encoder_decoder:
        return AutoModelForSeq2SeqLM
    kind, own_code = config.model_type, getattr(config, "auto_map", None) or {}
    writes = kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or "AutoModelForCausalLM" in own_code
    # Encoders are in the table of those that write, too: they can be configured as decoders.
    is_encoder = kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False)
    if not writes or is_encoder:
        raise CarefError(
            f"{kind!r} is not an encoder-decoder model, nor a decoder-only one: it does not write text"
        )
    return AutoModelForCausalLM


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Hold back transformers' progress bars and notes; errors still show."""
    from transformers.utils import logging as transformers_logging

    level = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity(logging.ERROR)
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()


@contextlib.contextmanager
def quiet_peft() -> Iterator[None]:
    """Hold back warnings of PEFT that say nothing to a user."""
    with warnings.catch_warnings():
        # Of every module type but its own short list; the tests here save, load and merge them.
        warnings.filterwarnings("ignore", message="Unsupported layer type", category=UserWarning)
        # AdaLoRA prunes some updates away whole, and looks for them under other names than it saved.
        warnings.filterwarnings("ignore", message=".*LoRA tensor.* have invalid shape", category=UserWarning)
        warnings.filterwarnings("ignore", message="The following rank_pattern keys", category=RuntimeWarning)
        # GPT-2's transposed layers: PEFT finds that out itself, and says so.
        warnings.filterwarnings("ignore", message="fan_in_fan_out is set to False", category=UserWarning)
        # PEFT 0.21 asks transformers 5 by an attribute's old name.
        warnings.filterwarnings("ignore", message="`is_gradient_checkpointing`", category=FutureWarning)
        yield


@contextlib.contextmanager
def _told_plainly(source: ModelSource) -> Iterator[None]:
    """Turn the loaders' many ways to fail into one line that names the model."""
    path = Path(source.name)
    looks_local = path.is_absolute() or source.name.startswith((".", "~")) or source.name.count("/") > 1
    if looks_local and not path.exists():
        raise CarefError(f"no model at {source.name}: the path does not exist")
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        if isinstance(error, CarefError):
            raise
        reason = " ".join(str(error).split())
        if "trust_remote_code" in reason:
            reason = "it needs code from its own repository; read it, then allow it with --trust-remote-code"
        raise CarefError(f"cannot load {source.name!r}: {reason[:300]}") from error


def device_of(model: torch.nn.Module) -> Any:
    """The device of a model's first parameter."""
    return next(model.parameters()).device
