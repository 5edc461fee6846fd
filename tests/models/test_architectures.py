"""The table of module names, held to the library's own defaults and to the models' own modules."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from peft.utils.constants import (
    TRANSFORMERS_MODELS_TO_IA3_FEEDFORWARD_MODULES_MAPPING,
    TRANSFORMERS_MODELS_TO_IA3_TARGET_MODULES_MAPPING,
)
from transformers import AutoConfig, LlamaConfig, MT5Config, PreTrainedConfig
from transformers.pytorch_utils import Conv1D

import families
from caref.models.architectures import (
    ARCHITECTURES,
    architecture_key,
    architecture_of,
    attention_shape,
    matching,
    query_layout,
)
from caref.models.loading import ModelSource, empty_model, load_config

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
MT5 = MT5Config(d_model=16, d_ff=32, d_kv=8, num_layers=2, num_heads=2, vocab_size=64)


def config_of(path: Path) -> PreTrainedConfig:
    return load_config(ModelSource(str(path)))


def layers(config: PreTrainedConfig) -> dict[str, torch.nn.Module]:
    """The modules that hold weights of their own."""
    modules = empty_model(config).named_modules()
    return {name: m for name, m in modules if next(m.parameters(recurse=False), None) is not None}


def test_every_row_has_a_model(request: pytest.FixtureRequest) -> None:
    keys = {architecture_key(config_of(request.getfixturevalue(family))) for family in families.ALL}
    assert keys | {"mt5"} == set(ARCHITECTURES)


@pytest.mark.parametrize(
    "key", [key for key in ARCHITECTURES if key in TRANSFORMERS_MODELS_TO_IA3_TARGET_MODULES_MAPPING]
)
def test_ia3_scales_what_the_library_does_by_default(request: pytest.FixtureRequest, key: str) -> None:
    config = MT5 if key == "mt5" else config_of(request.getfixturevalue(f"tiny_{key}"))
    names, row = list(layers(config)), architecture_of(config)

    def ending(ends: list[str]) -> list[str]:
        return [name for name in names if any(name.endswith(f".{end}") for end in ends)]

    scaled = ending(TRANSFORMERS_MODELS_TO_IA3_TARGET_MODULES_MAPPING[key])
    assert scaled
    assert matching(row.ia3, names) == scaled
    assert matching(row.ia3_feedforward, names) == ending(
        TRANSFORMERS_MODELS_TO_IA3_FEEDFORWARD_MODULES_MAPPING[key]
    )


def test_the_parts_of_a_decoder_only_model_are_all_of_it(tiny_decoder: Path) -> None:
    config = config_of(tiny_decoder)
    model, row, found = empty_model(config), architecture_of(config), layers(config)
    head = next(n for n, m in model.named_modules() if m is model.get_output_embeddings())
    outside = {n for n, m in found.items() if isinstance(m, torch.nn.Embedding)} | {head}
    assert set(matching(row.decoder, list(found))) == set(found) - outside
    linear = {n for n, m in found.items() if isinstance(m, (torch.nn.Linear, Conv1D))} - {head}
    assert set(matching(row.lora_linear, list(found))) == linear
    assert set(matching(row.layer_norms, list(found))) == set(found) - outside - linear
    for pattern in (row.query, row.query_key_value, row.ia3, row.ia3_feedforward):
        assert set(matching(pattern, list(found))) < linear
    assert len(matching(row.query, list(found))) == 2


def test_norms_and_linear_layers_of_an_encoder_decoder(tiny_bart: Path) -> None:
    config = config_of(tiny_bart)
    row, found = architecture_of(config), layers(config)
    norms = {n for n, m in found.items() if isinstance(m, torch.nn.LayerNorm)}
    assert set(matching(row.layer_norms, list(found))) == norms
    linear = {n for n, m in found.items() if isinstance(m, torch.nn.Linear)} - {"lm_head"}
    assert set(matching(row.lora_linear, list(found))) == linear
    stack = {n for n in found if n.startswith("model.decoder.")} - {"model.decoder.embed_tokens"}
    assert set(matching(row.decoder, list(found))) == stack


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        ("flan-t5-small", (8, 6, 64)),  # 6 heads of 64, of a hidden size of 512
        ("flan-t5-xl", (24, 32, 64)),
        ("bart-large", (12, 16, 64)),
        ("bert2bert-base-uncased", (12, 12, 64)),
        ("gpt2-medium", (24, 16, 64)),
        ("pythia-410m", (24, 16, 64)),
        ("Llama-3.2-1B", (16, 8, 64)),
        ("Mistral-7B-v0.3", (32, 8, 128)),
        ("Qwen2.5-0.5B", (24, 2, 64)),
        ("Qwen3-0.6B", (28, 8, 128)),  # 16 heads of 128, of a hidden size of 1024
        ("Phi-3-mini-4k-instruct", (32, 32, 96)),
    ],
)
def test_the_shape_of_the_decoders_cache(model: str, shape: tuple[int, int, int]) -> None:
    assert attention_shape(config_of(CONFIGS / model)) == shape


def test_the_shape_is_the_decoders_where_the_encoder_has_another() -> None:
    bart = AutoConfig.for_model(
        "bart", d_model=48, encoder_layers=3, decoder_layers=5, encoder_attention_heads=2,
        decoder_attention_heads=6,
    )  # fmt: skip
    assert attention_shape(bart) == (5, 6, 8)
    t5 = AutoConfig.for_model("t5", num_layers=3, num_decoder_layers=7, num_heads=4, d_kv=16)
    assert attention_shape(t5) == (7, 4, 16)


def test_the_cache_has_this_shape(tiny_decoder: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_decoder)
    cache = model(input_ids=torch.tensor([[4, 5, 6]]), use_cache=True).past_key_values
    number, heads, size = attention_shape(model.config)
    assert len(cache.layers) == number
    assert all(layer.keys.shape == (1, heads, 3, size) for layer in cache.layers)


def test_q_of_fewer_key_value_heads(tiny_phi3: Path) -> None:
    assert query_layout(config_of(tiny_phi3)) == (1, 32)
    assert query_layout(config_of(CONFIGS / "Phi-3-mini-4k-instruct")) == (1, 3072)
    assert query_layout(config_of(CONFIGS / "pythia-410m")) == (16, 64)
    assert query_layout(LlamaConfig()) is None
