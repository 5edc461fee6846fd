"""Choosing modules: the table, expressions of one's own, and what cannot be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from transformers import (
    BertConfig,
    BloomConfig,
    EncoderDecoderConfig,
    GPT2Config,
    OPTConfig,
    PegasusConfig,
    PreTrainedConfig,
    T5Config,
)

from caref.errors import CarefError
from caref.methods import METHODS, Method
from caref.methods.counting import count_for_config, count_parameters
from caref.models.architectures import architecture_key, architecture_of
from caref.models.loading import ModelSource, empty_model, load_config, load_model
from caref.settings import declared_settings

FLAN_T5_LARGE = Path(__file__).parents[1] / "data" / "configs" / "flan-t5-large" / "config.json"
TARGETED = [name for name in METHODS.names() if "target_modules" in declared_settings(METHODS.get(name))]
PEGASUS = PegasusConfig(
    d_model=16, vocab_size=64, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
    encoder_attention_heads=2, decoder_attention_heads=2,
)  # fmt: skip
OPT = OPTConfig(
    hidden_size=16,
    ffn_dim=32,
    vocab_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    word_embed_proj_dim=16,
)
# A matrix of q, k and v that the table knows nothing of.
BLOOM = BloomConfig(hidden_size=16, vocab_size=64, n_layer=2, n_head=2)
UNKNOWN: list[tuple[PreTrainedConfig, str]] = [
    (PEGASUS, r"model\.encoder\.layers\.\d+\.self_attn\.q_proj"),
    (OPT, r"model\.decoder\.layers\.\d+\.self_attn\.q_proj"),
    (BLOOM, r"transformer\.h\.\d+\.self_attention\.query_key_value"),
]


@pytest.mark.parametrize(
    ("method", "settings", "trainable", "total", "percent"),
    [
        ("base", {}, 783_150_080, 783_150_080, 100.00),
        ("dec", {}, 409_019_904, 783_150_080, 52.23),
        ("aqkv", {}, 150_994_944, 783_150_080, 19.28),
        ("laq", {}, 50_456_576, 783_150_080, 6.44),
        ("aq", {}, 50_331_648, 783_150_080, 6.43),
        ("lora", {"rank": 4}, 4_571_136, 787_721_216, 0.58),
        ("lora-r4", {}, 4_571_136, 787_721_216, 0.58),
        pytest.param("lora-r128", {}, 146_276_352, 929_426_432, 15.74, marks=pytest.mark.slow),
        ("adalora", {}, 36_582_912, 819_732_992, 4.46),
        ("ia3", {}, 282_624, 783_432_704, 0.04),
    ],
)
def test_the_papers_table(
    method: str, settings: dict[str, int], trainable: int, total: int, percent: float
) -> None:
    config = load_config(ModelSource(str(FLAN_T5_LARGE)))
    applied = METHODS.get(method)(**settings).apply(empty_model(config))
    assert {p.device.type for p in applied.parameters()} == {"meta"}, "weights were allocated"
    count = count_parameters(applied)
    assert (count.trainable, count.total) == (trainable, total)
    assert round(count.percent, 2) == percent


def test_a_model_with_a_tied_output_layer_has_one_matrix_less() -> None:
    config = load_config(ModelSource(str(FLAN_T5_LARGE)))
    config.scale_decoder_outputs = True
    assert count_for_config(METHODS.get("base")(), config).total == 783_150_080 - 32128 * 1024 == 750_251_008


@pytest.mark.parametrize(("config", "pattern"), UNKNOWN, ids=[config.model_type for config, _ in UNKNOWN])
@pytest.mark.parametrize("method", TARGETED)
def test_an_architecture_that_the_table_has_not(config: PreTrainedConfig, pattern: str, method: str) -> None:
    model = empty_model(config)
    with pytest.raises(CarefError) as raised:
        METHODS.get(method)().apply(model)
    message = str(raised.value)
    assert message.startswith(f"the architecture {config.model_type!r} is not in the table (t5, mt5, ")
    assert message.endswith(
        "name the modules to train yourself with --target-modules REGEX, "
        "or add a row to caref.models.architectures"
    )
    assert "\n" not in message
    named = {name for name, _ in model.named_modules() if re.fullmatch(pattern, name)}
    assert len(named) == 2
    chosen = METHODS.get(method)(target_modules=pattern).apply(model)
    trained = [name for name, p in chosen.named_parameters() if p.requires_grad]
    assert {each for name in trained for each in named if f".{each}." in name} == named
    assert all(any(f".{each}." in name for each in named) for name in trained)


def test_an_expression_of_ones_own_goes_before_the_table(tiny_t5: Path) -> None:
    model = load_model(ModelSource(str(tiny_t5)))
    chosen = METHODS.get("aq")(target_modules=r"decoder\.block\.1\.layer\.1\.EncDecAttention\.v").apply(model)
    assert [name for name, p in chosen.named_parameters() if p.requires_grad] == [
        "base_model.model.decoder.block.1.layer.1.EncDecAttention.v.ln_tuning_layers.default.weight"
    ]


@pytest.mark.parametrize("method", TARGETED)
@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("nowhere.*", "'nowhere.*' matches no module of this t5 model; its modules are called shared, "),
        ("SelfAttention.q", "'SelfAttention.q' matches no module of this t5 model"),
        ("(", "'(' is not a regular expression: "),
        (".*", "'.*' matches 'encoder', a T5Stack without weights of its own; match the layers alone"),
        (r"decoder\.block\.1", "matches 'decoder.block.1', a T5Block without weights of its own"),
        ("", "'' matches no module of this t5 model"),
    ],
)  # fmt: skip
def test_an_expression_that_cannot_be(tiny_t5: Path, method: str, pattern: str, message: str) -> None:
    model = load_model(ModelSource(str(tiny_t5)))
    before = {name: p.requires_grad for name, p in model.named_parameters()}
    with pytest.raises(CarefError) as raised:
        METHODS.get(method)(target_modules=pattern).apply(model)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert {name: p.requires_grad for name, p in model.named_parameters()} == before


def test_lora_of_a_module_that_is_no_layer_of_weights(tiny_t5: Path) -> None:
    model = load_model(ModelSource(str(tiny_t5)))
    with pytest.raises(CarefError, match="matches a T5LayerNorm, which LoRA cannot adapt") as raised:
        METHODS.get("lora")(target_modules=r"encoder\.final_layer_norm").apply(model)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 0}, "rank must be at least 1, got 0"),
        ({"rank": -4}, "rank must be at least 1, got -4"),
        ({"lora_dropout": 1.0}, r"lora_dropout must be within \[0, 1\), got 1.0"),
        ({"lora_dropout": -0.1}, r"lora_dropout must be within \[0, 1\)"),
        ({"lora_alpha": 0.0}, "lora_alpha must be above 0, got 0.0"),
    ],
)
def test_loras_settings_are_checked_at_once(settings: dict[str, float], message: str) -> None:
    with pytest.raises(CarefError, match=message):
        METHODS.get("lora")(**settings)


def test_loras_scale(tiny_t5: Path) -> None:
    model = load_model(ModelSource(str(tiny_t5)))
    assert METHODS.get("lora")(rank=8).peft_config(model).lora_alpha == 16
    assert METHODS.get("lora")(rank=8, lora_alpha=4).peft_config(model).lora_alpha == 4


def test_an_expression_for_a_decoder_only_model_that_matches_nothing(tiny_llama: Path) -> None:
    model = load_model(ModelSource(str(tiny_llama)))
    with pytest.raises(CarefError) as raised:
        METHODS.get("aq")(target_modules=r"model\.layers\.\d+\.attention\.q").apply(model)
    assert str(raised.value).endswith(
        "matches no module of this llama model; its modules are called model.embed_tokens, "
        "model.layers.0.self_attn.q_proj, model.layers.0.self_attn.k_proj, ..."
    )


@pytest.mark.parametrize("method", METHODS.names())
def test_an_encoder_alone_is_refused(method: str) -> None:
    entry = METHODS.get(method)
    if method == "peft":
        pytest.skip("needs a file")
    with pytest.raises(CarefError, match="'bert' is not an encoder-decoder model, nor a decoder-only one"):
        count_for_config(entry(), BertConfig())


def test_the_tables_keys() -> None:
    assert architecture_key(T5Config()) == "t5"
    pair = EncoderDecoderConfig.from_encoder_decoder_configs(BertConfig(), BertConfig())
    assert architecture_key(pair) == "encoder-decoder:bert-bert"
    assert architecture_of(pair).name == "BERT-to-BERT"
    assert architecture_key(GPT2Config()) == "gpt2"
    other = EncoderDecoderConfig.from_encoder_decoder_configs(BertConfig(), GPT2Config())
    with pytest.raises(CarefError, match="the architecture 'encoder-decoder:bert-gpt2' is not in the table"):
        architecture_of(other)


@pytest.mark.parametrize("name", METHODS.names())
def test_every_method_says_what_it_trains(name: str) -> None:
    method: type[Method] = METHODS.get(name)
    assert method.summary
    assert "\n" not in method.summary
    assert method.__doc__


def test_trained_copies_are_not_shared_with_the_original(tiny_t5: Path) -> None:
    model = METHODS.get("aq")().apply(load_model(ModelSource(str(tiny_t5))))
    weights = [p.data_ptr() for p in model.parameters()]
    assert len(set(weights)) == len(weights)
    assert all(torch.isfinite(p).all() for p in model.parameters())
