"""Where things are called what: one row per architecture.

A method says "the query of self-attention"; this table says which modules those are. The
expressions must match a module's whole name (`re.fullmatch`, as PEFT does for a string).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from caref.errors import CarefError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


@dataclass(frozen=True, slots=True)
class Architecture:
    """The module names of one family of models, as regular expressions.

    Attributes:
        name: The row's name in messages and documents.
        query: The q projections of self-attention, cross-attention's left out; where q, k and v lie in one
            matrix, that one.
        query_key_value: The q, k and v projections of self-attention.
        layer_norms: Every layer norm, encoder and decoder, those of q and k included.
        decoder: The layers that hold the decoder stack's own weights: no embedding shared with the
            encoder, no output head. Of a decoder-only model, the blocks and the final norm: no embedding of
            tokens or positions. Not the blocks around the layers: PEFT cannot merge a whole block.
        lora_linear: The linear layers that LoRA adapts: all but the output head.
        ia3: What (IA)^3 scales: keys and values of every attention, and the end of each feed-forward layer.
        ia3_feedforward: Those of them whose input is scaled rather than their output.
        fused_query: Where q lies in a matrix that holds q, k and v: ``"thirds"``, the first third of its
            output features; ``"rows"``, the first heads * head size of them, k and v may be narrower;
            ``"heads"``, the first third of every head's. None where q has a matrix of its own.

    What (IA)^3 scales is PEFT's own default where it has one, which for some families is q and v rather
    than k and v; for BERT-to-BERT and Phi-3 it is what corresponds.
    """

    name: str
    query: str
    query_key_value: str
    layer_norms: str
    decoder: str
    lora_linear: str
    ia3: str
    ia3_feedforward: str
    fused_query: Literal["thirds", "rows", "heads"] | None = None


T5 = Architecture(
    name="T5",
    query=r"(encoder|decoder)\.block\.\d+\.layer\.0\.SelfAttention\.q",
    query_key_value=r"(encoder|decoder)\.block\.\d+\.layer\.0\.SelfAttention\.[qkv]",
    layer_norms=r"(encoder|decoder)\.(block\.\d+\.layer\.\d+\.layer_norm|final_layer_norm)",
    decoder=r"decoder\.(block\.\d+\.layer\.\d+\.(layer_norm"
    r"|\w+\.(q|k|v|o|relative_attention_bias|wi|wi_0|wi_1|wo))|final_layer_norm)",
    lora_linear=r"(encoder|decoder)\.block\.\d+\.layer\.\d+\.\w+\.(q|k|v|o|wi|wi_0|wi_1|wo)",
    ia3=r"(encoder|decoder)\.block\.\d+\.layer\.\d+\.\w+\.(k|v|wo)",
    ia3_feedforward=r"(encoder|decoder)\.block\.\d+\.layer\.\d+\.\w+\.wo",
)

_MT5_IA3 = r"(encoder|decoder)\.block\.\d+\.layer\.\d+\.\w+\.(k|v|wi_1)"

MT5 = replace(T5, name="mT5", ia3=_MT5_IA3, ia3_feedforward=r"(?!)")  # none: its default scales outputs alone

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
    ia3=_BERT_LAYER + r"((attention|crossattention)\.self\.(key|value)|output\.dense)",
    ia3_feedforward=_BERT_LAYER + r"output\.dense",
)

_BART_LAYER = r"model\.(encoder|decoder)\.layers\.\d+\."

BART = Architecture(
    name="BART",
    query=_BART_LAYER + r"self_attn\.q_proj",
    query_key_value=_BART_LAYER + r"self_attn\.[qkv]_proj",
    layer_norms=r"model\.(encoder|decoder)\."
    r"(layernorm_embedding|layers\.\d+\.(self_attn_layer_norm|encoder_attn_layer_norm|final_layer_norm))",
    # The decoder's positions are its own; its token embedding is the encoder's.
    decoder=r"model\.decoder\.(embed_positions|layernorm_embedding|layers\.\d+\."
    r"((self_attn|encoder_attn)\.(q|k|v|out)_proj|fc1|fc2|\w+_layer_norm))",
    lora_linear=_BART_LAYER + r"((self_attn|encoder_attn)\.(q|k|v|out)_proj|fc1|fc2)",
    ia3=_BART_LAYER + r"((self_attn|encoder_attn)\.[qv]_proj|fc2)",
    ia3_feedforward=_BART_LAYER + r"fc2",
)

_LLAMA_LAYER = r"model\.layers\.\d+\."
_LLAMA_LINEAR = _LLAMA_LAYER + r"(self_attn\.[qkvo]_proj|mlp\.(gate|up|down)_proj)"
_LLAMA_NORMS = r"model\.(norm|layers\.\d+\.(input_layernorm|post_attention_layernorm|self_attn\.[qk]_norm))"

LLAMA = Architecture(
    name="LLaMA",
    query=_LLAMA_LAYER + r"self_attn\.q_proj",
    query_key_value=_LLAMA_LAYER + r"self_attn\.[qkv]_proj",
    layer_norms=_LLAMA_NORMS,
    decoder=f"({_LLAMA_LINEAR})|({_LLAMA_NORMS})",
    lora_linear=_LLAMA_LINEAR,
    ia3=_LLAMA_LAYER + r"(self_attn\.[kv]_proj|mlp\.down_proj)",
    ia3_feedforward=_LLAMA_LAYER + r"mlp\.down_proj",
)

QWEN = replace(LLAMA, name="Qwen", ia3=_LLAMA_LAYER + r"(self_attn\.[qv]_proj|mlp\.down_proj)")

_PHI3_LINEAR = _LLAMA_LAYER + r"(self_attn\.(qkv|o)_proj|mlp\.(gate_up|down)_proj)"

PHI3 = Architecture(
    name="Phi-3",
    query=_LLAMA_LAYER + r"self_attn\.qkv_proj",
    query_key_value=_LLAMA_LAYER + r"self_attn\.qkv_proj",
    layer_norms=_LLAMA_NORMS,
    decoder=f"({_PHI3_LINEAR})|({_LLAMA_NORMS})",
    lora_linear=_PHI3_LINEAR,
    ia3=_LLAMA_LAYER + r"(self_attn\.qkv_proj|mlp\.down_proj)",
    ia3_feedforward=_LLAMA_LAYER + r"mlp\.down_proj",
    fused_query="rows",
)

_GPT2_BLOCK = r"transformer\.h\.\d+\."
_GPT2_LINEAR = _GPT2_BLOCK + r"(attn\.(c_attn|c_proj)|mlp\.(c_fc|c_proj))"
_GPT2_NORMS = r"transformer\.(ln_f|h\.\d+\.ln_[12])"

GPT2 = Architecture(
    name="GPT-2",
    query=_GPT2_BLOCK + r"attn\.c_attn",
    query_key_value=_GPT2_BLOCK + r"attn\.c_attn",
    layer_norms=_GPT2_NORMS,
    decoder=f"({_GPT2_LINEAR})|({_GPT2_NORMS})",
    lora_linear=_GPT2_LINEAR,
    ia3=_GPT2_BLOCK + r"(attn\.c_attn|mlp\.c_proj)",
    ia3_feedforward=_GPT2_BLOCK + r"mlp\.c_proj",
    fused_query="thirds",
)

_NEOX_LAYER = r"gpt_neox\.layers\.\d+\."
_NEOX_LINEAR = _NEOX_LAYER + r"(attention\.(query_key_value|dense)|mlp\.(dense_h_to_4h|dense_4h_to_h))"
_NEOX_NORMS = r"gpt_neox\.(final_layer_norm|layers\.\d+\.(input_layernorm|post_attention_layernorm))"

GPT_NEOX = Architecture(
    name="GPT-NeoX",
    query=_NEOX_LAYER + r"attention\.query_key_value",
    query_key_value=_NEOX_LAYER + r"attention\.query_key_value",
    layer_norms=_NEOX_NORMS,
    decoder=f"({_NEOX_LINEAR})|({_NEOX_NORMS})",
    lora_linear=_NEOX_LINEAR,
    ia3=_NEOX_LAYER + r"(attention\.query_key_value|mlp\.dense_4h_to_h)",
    ia3_feedforward=_NEOX_LAYER + r"mlp\.dense_4h_to_h",
    fused_query="heads",
)

# What a configuration says of itself (`model_type`, for an encoder-decoder pair its parts') to its row.
ARCHITECTURES: dict[str, Architecture] = {
    "t5": T5,
    "mt5": MT5,
    "encoder-decoder:bert-bert": BERT_TO_BERT,
    "bart": BART,
    "gpt2": GPT2,
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": QWEN,
    "qwen3": QWEN,
    "phi3": PHI3,
    "gpt_neox": GPT_NEOX,
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


def attention_shape(config: PreTrainedConfig) -> tuple[int, int, int]:
    """The shape of the decoder's self-attention cache: layers, key and value heads, features of a head."""
    decoder = config.decoder if config.model_type == "encoder-decoder" else config
    layers = getattr(decoder, "num_decoder_layers", None) or getattr(decoder, "decoder_layers", None)
    heads = getattr(decoder, "decoder_attention_heads", None) or decoder.num_attention_heads
    size = getattr(decoder, "d_kv", None) or getattr(decoder, "head_dim", None)
    return (
        layers or decoder.num_hidden_layers,
        getattr(decoder, "num_key_value_heads", None) or heads,
        size or decoder.hidden_size // heads,
    )


def query_layout(config: PreTrainedConfig) -> tuple[int, int] | None:
    """Where q lies among the output features of a matrix that holds q, k and v.

    Returns:
        Into how many equal groups the features fall, and how many at the beginning of each group are
        q's. None where q has a matrix of its own.
    """
    match architecture_of(config).fused_query:
        case None:
            return None
        case "thirds":
            return 1, config.hidden_size
        case "rows":
            return 1, config.num_attention_heads * attention_shape(config)[2]
        case "heads":
            return config.num_attention_heads, attention_shape(config)[2]


def matching(pattern: str, names: list[str]) -> list[str]:
    """The names that a pattern of the table matches as a whole."""
    compiled = re.compile(pattern)
    return [name for name in names if compiled.fullmatch(name)]
