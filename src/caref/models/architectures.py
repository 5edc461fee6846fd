"""Where things are called what: one row per architecture.

A method says "the query of self-attention"; this table says which modules those are. The
expressions must match a module's whole name (`re.fullmatch`, as PEFT does for a string).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from caref.errors import CarefError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


@dataclass(frozen=True, slots=True)
class Architecture:
    """The module names of one family of models, as regular expressions.

    Attributes:
        name: The row's name in messages and documents.
        query: The q projections of self-attention, cross-attention's left out.
        query_key_value: The q, k and v projections of self-attention.
        layer_norms: Every layer norm, encoder and decoder.
        decoder: The layers that hold the decoder stack's own weights: no embedding shared with the
            encoder, no output head. Not the blocks around them: PEFT cannot merge a whole block.
        lora_linear: The linear layers that LoRA adapts: all but the output head.
    """

    name: str
    query: str
    query_key_value: str
    layer_norms: str
    decoder: str
    lora_linear: str


T5 = Architecture(
    name="T5",
    query=r"(encoder|decoder)\.block\.\d+\.layer\.0\.SelfAttention\.q",
    query_key_value=r"(encoder|decoder)\.block\.\d+\.layer\.0\.SelfAttention\.[qkv]",
    layer_norms=r"(encoder|decoder)\.(block\.\d+\.layer\.\d+\.layer_norm|final_layer_norm)",
    decoder=r"decoder\.(block\.\d+\.layer\.\d+\.(layer_norm"
    r"|\w+\.(q|k|v|o|relative_attention_bias|wi|wi_0|wi_1|wo))|final_layer_norm)",
    lora_linear=r"(encoder|decoder)\.block\.\d+\.layer\.\d+\.\w+\.(q|k|v|o|wi|wi_0|wi_1|wo)",
)

_BERT_LAYER = r"(encoder\.encoder|decoder\.bert\.encoder)\.layer\.\d+\."

BERT_TO_BERT = Architecture(
    name="BERT-to-BERT",
    query=_BERT_LAYER + r"attention\.self\.query",
    query_key_value=_BERT_LAYER + r"attention\.self\.(query|key|value)",
    layer_norms=r"(encoder|decoder)\.(.+\.)?LayerNorm",
    # The decoder has position and token-type embeddings of its own; its word embedding stays, as T5's does.
    decoder=r"decoder\.bert\.(encoder\.layer\.\d+\.(.+\.)?(query|key|value|dense|LayerNorm)"
    r"|embeddings\.(position_embeddings|token_type_embeddings|LayerNorm))",
    lora_linear=_BERT_LAYER + r"((attention|crossattention)\.self\.(query|key|value)|(.+\.)?(dense))",
)

# What a configuration says of itself (`model_type`, for an encoder-decoder pair its parts') to its row.
ARCHITECTURES: dict[str, Architecture] = {
    "t5": T5,
    "mt5": T5,
    "encoder-decoder:bert-bert": BERT_TO_BERT,
}


def architecture_key(config: PreTrainedConfig) -> str:
    """The key of `ARCHITECTURES` that fits a configuration."""
    if config.model_type == "encoder-decoder":
        return f"encoder-decoder:{config.encoder.model_type}-{config.decoder.model_type}"
    return str(config.model_type)


def architecture_of(config: PreTrainedConfig) -> Architecture:
    """The row for a model's configuration.

    Raises:
        CarefError: If the table has none; the message says how to name the modules by hand.
    """
    key = architecture_key(config)
    if key not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise CarefError(
            f"the architecture {key!r} is not in the table ({known}); name the modules to train yourself "
            "with --target-modules REGEX, or add a row to caref.models.architectures"
        )
    return ARCHITECTURES[key]


def matching(pattern: str, names: list[str]) -> list[str]:
    """The names that a pattern of the table matches as a whole."""
    compiled = re.compile(pattern)
    return [name for name in names if compiled.fullmatch(name)]
