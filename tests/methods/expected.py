"""What each method trains on the tiny models, written out by hand from their module names."""

from __future__ import annotations

LAYERS = (0, 1)


def _t5() -> dict[str, set[str]]:
    stacks = ("encoder", "decoder")
    attention = {
        letter: {f"{s}.block.{n}.layer.0.SelfAttention.{letter}.weight" for s in stacks for n in LAYERS}
        for letter in "qkvo"
    }
    norms = {f"{s}.final_layer_norm.weight" for s in stacks}
    norms |= {f"encoder.block.{n}.layer.{part}.layer_norm.weight" for n in LAYERS for part in (0, 1)}
    norms |= {f"decoder.block.{n}.layer.{part}.layer_norm.weight" for n in LAYERS for part in (0, 1, 2)}
    cross = {
        f"decoder.block.{n}.layer.1.EncDecAttention.{letter}.weight" for n in LAYERS for letter in "qkvo"
    }
    feed_forward = {
        f"{s}.block.{n}.layer.{part}.DenseReluDense.{name}.weight"
        for s, part in (("encoder", 1), ("decoder", 2))
        for n in LAYERS
        for name in ("wi_0", "wi_1", "wo")
    }
    linear = set().union(*attention.values()) | cross | feed_forward
    decoder = {name for name in linear | norms if name.startswith("decoder.")}
    return {
        "aq": attention["q"],
        "aqkv": attention["q"] | attention["k"] | attention["v"],
        "laq": norms | attention["q"],
        "dec": decoder | {"decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
        "lora": _lora(linear),
    }


def _bert2bert() -> dict[str, set[str]]:
    stacks = ("encoder.encoder", "decoder.bert.encoder")

    def both(module: str) -> set[str]:
        return {f"{module}.weight", f"{module}.bias"}

    def every(*modules: str) -> set[str]:
        return set().union(*map(both, modules))

    projections = {
        name: every(*(f"{s}.layer.{n}.attention.self.{name}" for s in stacks for n in LAYERS))
        for name in ("query", "key", "value")
    }
    norms = every("encoder.embeddings.LayerNorm", "decoder.bert.embeddings.LayerNorm")
    norms |= both("decoder.cls.predictions.transform.LayerNorm")
    norms |= every(
        *(
            f"{s}.layer.{n}.{part}.LayerNorm"
            for s in stacks
            for n in LAYERS
            for part in ("attention.output", "output")
        )
    )
    norms |= every(*(f"decoder.bert.encoder.layer.{n}.crossattention.output.LayerNorm" for n in LAYERS))
    dense = every(
        *(
            f"{s}.layer.{n}.{part}.dense"
            for s in stacks
            for n in LAYERS
            for part in ("attention.output", "intermediate", "output")
        )
    )
    cross = every(
        *(
            f"decoder.bert.encoder.layer.{n}.crossattention.{part}"
            for n in LAYERS
            for part in ("self.query", "self.key", "self.value", "output.dense")
        )
    )
    linear = set().union(*projections.values()) | dense | cross
    decoder = {name for name in linear | norms if name.startswith("decoder.bert.")}
    decoder |= {f"decoder.bert.embeddings.{kind}_embeddings.weight" for kind in ("position", "token_type")}
    return {
        "aq": projections["query"],
        "aqkv": set().union(*projections.values()),
        "laq": norms | projections["query"],
        "dec": decoder,
        "lora": _lora({name for name in linear if name.endswith(".weight")}),
    }


def _lora(weights: set[str]) -> set[str]:
    modules = {name.removesuffix(".weight") for name in weights}
    return {f"{module}.lora_{letter}.weight" for module in modules for letter in "AB"}


EXPECTED: dict[str, dict[str, set[str]]] = {
    "tiny-t5": _t5(),
    "tiny-t5-untied": _t5(),
    "tiny-bert2bert": _bert2bert(),
}
"""Model to method to the names of the weights that it trains, those of the base model."""
