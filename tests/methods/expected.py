"""What each method trains on the tiny models, written out by hand from their module names."""

from __future__ import annotations

LAYERS = (0, 1)
COPIES = ("aq", "laq", "aqkv", "dec")
"""Methods that train copies of the model's own weights; the others add weights, but for base."""
LOW_RANK = ("lora", "lora-r4", "lora-r128", "adalora")
VIRTUAL = ("prefix", "prompt")
"""Methods whose virtual tokens change the model's answers from the start, and cannot be merged."""


def weights(*modules: str) -> set[str]:
    return {f"{module}.weight" for module in modules}


def both(*modules: str) -> set[str]:
    return {f"{module}.{name}" for module in modules for name in ("weight", "bias")}


def _methods(
    *,
    query: set[str],
    key_value: set[str],
    norms: set[str],
    decoder: set[str],
    linear: set[str],
    scaled: set[str],
) -> dict[str, set[str]]:
    """The table of one family.

    Args:
        query: Weights and biases of self-attention's q.
        key_value: Those of k and v; of q as well where they are one matrix.
        norms: Those of every layer norm.
        decoder: What dec trains.
        linear: The modules that LoRA adapts.
        scaled: The modules that (IA)^3 scales.
    """
    lora = {f"{module}.lora_{letter}.weight" for module in linear for letter in "AB"}
    return {
        "aq": query,
        "laq": query | norms,
        "aqkv": {name for name in query | key_value if not name.endswith((".query_weight", ".query_bias"))},
        "dec": decoder,
        **dict.fromkeys(LOW_RANK, lora),
        "adalora": {f"{module}.lora_{letter}" for module in linear for letter in "ABE"},
        "ia3": {f"{module}.ia3_l" for module in scaled},
        **{name: {"prompt_encoder.embedding.weight"} for name in VIRTUAL},
    }


def _t5() -> dict[str, set[str]]:
    stacks = ("encoder", "decoder")
    own = {c: {f"{s}.block.{n}.layer.0.SelfAttention.{c}" for s in stacks for n in LAYERS} for c in "qkvo"}
    cross = {c: {f"decoder.block.{n}.layer.1.EncDecAttention.{c}" for n in LAYERS} for c in "qkvo"}
    feed_forward = {
        name: {f"encoder.block.{n}.layer.1.DenseReluDense.{name}" for n in LAYERS}
        | {f"decoder.block.{n}.layer.2.DenseReluDense.{name}" for n in LAYERS}
        for name in ("wi_0", "wi_1", "wo")
    }
    norms = {f"{s}.final_layer_norm" for s in stacks}
    norms |= {f"encoder.block.{n}.layer.{part}.layer_norm" for n in LAYERS for part in (0, 1)}
    norms |= {f"decoder.block.{n}.layer.{part}.layer_norm" for n in LAYERS for part in (0, 1, 2)}
    linear = set().union(*own.values(), *cross.values(), *feed_forward.values())
    decoder = {name for name in linear | norms if name.startswith("decoder.")}
    return _methods(
        query=weights(*own["q"]),
        key_value=weights(*own["k"], *own["v"]),
        norms=weights(*norms),
        decoder=weights(*decoder, "decoder.block.0.layer.0.SelfAttention.relative_attention_bias"),
        linear=linear,
        scaled=own["k"] | own["v"] | cross["k"] | cross["v"] | feed_forward["wo"],
    )


def _bert2bert() -> dict[str, set[str]]:
    layers = {f"{s}.layer.{n}" for s in ("encoder.encoder", "decoder.bert.encoder") for n in LAYERS}
    decoding = {layer for layer in layers if layer.startswith("decoder.")}
    own = {c: {f"{layer}.attention.self.{c}" for layer in layers} for c in ("query", "key", "value")}
    cross = {c: {f"{layer}.crossattention.self.{c}" for layer in decoding} for c in own}
    outputs = {f"{layer}.output" for layer in layers}
    attended = {f"{layer}.attention.output" for layer in layers}
    attended |= {f"{layer}.crossattention.output" for layer in decoding}
    dense = {f"{part}.dense" for part in outputs | attended | {f"{layer}.intermediate" for layer in layers}}
    norms = {f"{part}.LayerNorm" for part in outputs | attended}
    norms |= {"encoder.embeddings.LayerNorm", "decoder.bert.embeddings.LayerNorm"}
    norms |= {"decoder.cls.predictions.transform.LayerNorm"}
    linear = set().union(*own.values(), *cross.values(), dense)
    decoder = both(*(name for name in linear | norms if name.startswith("decoder.bert.")))
    decoder |= weights("decoder.bert.embeddings.position_embeddings")
    decoder |= weights("decoder.bert.embeddings.token_type_embeddings")
    return _methods(
        query=both(*own["query"]),
        key_value=both(*own["key"], *own["value"]),
        norms=both(*norms),
        decoder=decoder,
        linear=linear,
        scaled=own["key"] | own["value"] | cross["key"] | cross["value"] | {f"{o}.dense" for o in outputs},
    )


def _bart() -> dict[str, set[str]]:
    stacks = ("model.encoder", "model.decoder")
    layers = {f"{s}.layers.{n}" for s in stacks for n in LAYERS}
    decoding = {layer for layer in layers if "decoder" in layer}
    own = {c: {f"{layer}.self_attn.{c}_proj" for layer in layers} for c in ("q", "k", "v", "out")}
    cross = {c: {f"{layer}.encoder_attn.{c}_proj" for layer in decoding} for c in own}
    norms = {f"{s}.layernorm_embedding" for s in stacks}
    norms |= {f"{layer}.{kind}_layer_norm" for layer in layers for kind in ("self_attn", "final")}
    norms |= {f"{layer}.encoder_attn_layer_norm" for layer in decoding}
    ends = {f"{layer}.fc2" for layer in layers}
    linear = set().union(*own.values(), *cross.values(), ends, {f"{layer}.fc1" for layer in layers})
    decoder = both(*(name for name in linear | norms if name.startswith("model.decoder.")))
    return _methods(
        query=both(*own["q"]),
        key_value=both(*own["k"], *own["v"]),
        norms=both(*norms),
        decoder=decoder | weights("model.decoder.embed_positions"),
        linear=linear,
        # The library's default for BART scales q, not k.
        scaled=own["q"] | own["v"] | cross["q"] | cross["v"] | ends,
    )


def _llama(*, scaled: str = "kv", bias: bool = False, normed: bool = False) -> dict[str, set[str]]:
    """LLaMA and its kind: `bias` of q, k and v, and norms of q and k, where it has them."""
    layers = [f"model.layers.{n}" for n in LAYERS]
    own = {c: {f"{layer}.self_attn.{c}_proj" for layer in layers} for c in "qkvo"}
    feed_forward = {c: {f"{layer}.mlp.{c}_proj" for layer in layers} for c in ("gate", "up", "down")}
    norms = {f"{layer}.{kind}_layernorm" for layer in layers for kind in ("input", "post_attention")}
    norms |= {f"{layer}.self_attn.{c}_norm" for layer in layers for c in "qk" if normed} | {"model.norm"}
    linear = set().union(*own.values(), *feed_forward.values())
    project = both if bias else weights
    query, key_value = project(*own["q"]), project(*own["k"], *own["v"])
    return _methods(
        query=query,
        key_value=key_value,
        norms=weights(*norms),
        decoder=weights(*linear, *norms) | query | key_value,
        linear=linear,
        scaled=own[scaled[0]] | own[scaled[1]] | feed_forward["down"],
    )


def _phi3() -> dict[str, set[str]]:
    layers = [f"model.layers.{n}" for n in LAYERS]
    fused = {f"{layer}.self_attn.qkv_proj" for layer in layers}
    ends = {f"{layer}.mlp.down_proj" for layer in layers}
    linear = fused | ends
    linear |= {f"{layer}.{part}" for layer in layers for part in ("self_attn.o_proj", "mlp.gate_up_proj")}
    norms = {f"{layer}.{kind}_layernorm" for layer in layers for kind in ("input", "post_attention")}
    norms |= {"model.norm"}
    return _methods(
        query={f"{module}.query_weight" for module in fused},
        key_value=weights(*fused),
        norms=weights(*norms),
        decoder=weights(*linear, *norms),
        linear=linear,
        scaled=fused | ends,
    )


def _with_biases(fused: set[str], ends: set[str], others: set[str], norms: set[str]) -> dict[str, set[str]]:
    """GPT-2's and GPT-NeoX's kind: q, k and v in one, biases everywhere."""
    linear = fused | ends | others
    return _methods(
        query={f"{module}.query_{name}" for module in fused for name in ("weight", "bias")},
        key_value=both(*fused),
        norms=both(*norms),
        decoder=both(*linear, *norms),
        linear=linear,
        scaled=fused | ends,
    )


def _gpt2() -> dict[str, set[str]]:
    blocks = [f"transformer.h.{n}" for n in LAYERS]
    return _with_biases(
        {f"{block}.attn.c_attn" for block in blocks},
        {f"{block}.mlp.c_proj" for block in blocks},
        {f"{block}.{part}" for block in blocks for part in ("attn.c_proj", "mlp.c_fc")},
        {f"{block}.{norm}" for block in blocks for norm in ("ln_1", "ln_2")} | {"transformer.ln_f"},
    )


def _gpt_neox() -> dict[str, set[str]]:
    layers = [f"gpt_neox.layers.{n}" for n in LAYERS]
    return _with_biases(
        {f"{layer}.attention.query_key_value" for layer in layers},
        {f"{layer}.mlp.dense_4h_to_h" for layer in layers},
        {f"{layer}.{part}" for layer in layers for part in ("attention.dense", "mlp.dense_h_to_4h")},
        {f"{layer}.{kind}_layernorm" for layer in layers for kind in ("input", "post_attention")}
        | {"gpt_neox.final_layer_norm"},
    )


EXPECTED: dict[str, dict[str, set[str]]] = {
    "tiny-t5": _t5(),
    "tiny-t5-untied": _t5(),
    "tiny-bert2bert": _bert2bert(),
    "tiny-bart": _bart(),
    "tiny-gpt2": _gpt2(),
    "tiny-llama": _llama(),
    "tiny-qwen2": _llama(scaled="qv", bias=True),
    "tiny-qwen3": _llama(scaled="qv", normed=True),
    "tiny-mistral": _llama(),
    "tiny-phi3": _phi3(),
    "tiny-gpt-neox": _gpt_neox(),
}
"""Model to method to the names of the weights that it trains, those of the base model.

Where q, k and v are one matrix, ``query_weight`` and ``query_bias`` stand for q's part of it.
"""
