from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM
from transformers.utils import logging as transformers_logging

from caref.errors import CarefError
from caref.models.loading import (
    ModelSource,
    device_of,
    empty_model,
    load_config,
    load_model,
    load_tokenizer,
    quiet_transformers,
    untie_output_layer,
)


def copy_with(path: Path, target: Path, **changes: Any) -> Path:
    """A copy of a model's directory whose configuration has these values."""
    shutil.copytree(path, target)
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, **changes}))
    return target


def load(path: Path) -> Any:
    return load_model(ModelSource(str(path)))


def test_a_model_is_loaded_in_float32_whatever_it_was_saved_in(tiny_t5: Path, tmp_path: Path) -> None:
    half = AutoModelForSeq2SeqLM.from_pretrained(tiny_t5, dtype=torch.bfloat16)
    half.save_pretrained(tmp_path / "half")
    assert json.loads((tmp_path / "half" / "config.json").read_text())["dtype"] == "bfloat16"
    model = load(tmp_path / "half")
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert device_of(model) == torch.device("cpu")


@pytest.mark.parametrize("save", [True, False])
def test_tied_and_untied_stay_so(tiny_t5: Path, tiny_t5_untied: Path, tmp_path: Path, save: bool) -> None:
    for path, tied in ((tiny_t5, True), (tiny_t5_untied, False)):
        model = load(path)
        if save:
            model.save_pretrained(tmp_path / path.name)
            model = load(tmp_path / path.name)
        assert (model.lm_head.weight is model.shared.weight) == tied
        assert torch.equal(model.lm_head.weight, model.shared.weight) == tied


def test_a_saved_model_answers_the_same(tiny_model: Path, tmp_path: Path) -> None:
    model = load(tiny_model).eval()
    model.save_pretrained(tmp_path / "again")
    again = load(tmp_path / "again").eval()
    inputs = {"input_ids": torch.tensor([[3, 4, 5]]), "decoder_input_ids": torch.tensor([[0, 6, 7]])}
    assert torch.equal(model(**inputs).logits, again(**inputs).logits)


def test_pickled_weights_are_refused(tiny_t5: Path, tmp_path: Path) -> None:
    folder = copy_with(tiny_t5, tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    torch.save(load(tiny_t5).state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(CarefError, match=r"cannot load .*pickled.*safetensors") as raised:
        load(folder)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("known", [True, False])
def test_code_of_a_repository_does_not_run(tiny_t5: Path, tmp_path: Path, known: bool) -> None:
    changes: dict[str, Any] = {
        "auto_map": {"AutoConfig": "code.Config", "AutoModelForSeq2SeqLM": "code.Model"}
    }
    folder = copy_with(tiny_t5, tmp_path / "coded", **changes, **({} if known else {"model_type": "own"}))
    ran = tmp_path / "ran"
    (folder / "code.py").write_text(f"open({str(ran)!r}, 'w')\n")
    if known:
        # transformers has the architecture itself, and uses its own.
        assert load(folder).config.model_type == "t5"
    else:
        with pytest.raises(CarefError, match="--trust-remote-code") as raised:
            load(folder)
        assert "\n" not in str(raised.value)
    assert not ran.exists()


def test_a_missing_path_is_told_at_once(tmp_path: Path) -> None:
    for name in (str(tmp_path / "nothing"), "./nothing", "a/b/c"):
        with pytest.raises(CarefError, match=f"no model at {name}: the path does not exist"):
            load_config(ModelSource(name))


def test_a_directory_without_a_model(tmp_path: Path, tiny_t5: Path) -> None:
    for load_it in (load_config, load_model, load_tokenizer):
        with pytest.raises(CarefError, match=r"cannot load") as raised:
            load_it(ModelSource(str(tmp_path)))
        assert "\n" not in str(raised.value)
    shutil.copy(tiny_t5 / "config.json", tmp_path)
    with pytest.raises(CarefError, match=r"cannot load.*safetensors"):
        load(tmp_path)


def test_a_broken_configuration_or_weights_file(tmp_path: Path, tiny_t5: Path) -> None:
    folder = copy_with(tiny_t5, tmp_path / "cut")
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(CarefError, match=r"cannot load"):
        load(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(CarefError, match=r"cannot load"):
        load(folder)


def test_missing_weights_are_not_made_up(tiny_t5: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = copy_with(tiny_t5, tmp_path / "holes")
    weights = load_file(folder / "model.safetensors")
    del weights["decoder.block.1.layer.0.SelfAttention.q.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        CarefError, match=r"holes lacks 1 weights of its architecture: decoder.block.1.layer.0"
    ):
        load(folder)


def test_weights_of_another_shape(tiny_t5: Path, tmp_path: Path) -> None:
    with pytest.raises(CarefError, match=r"cannot load .*other"):
        load(copy_with(tiny_t5, tmp_path / "other", d_ff=48))


def test_a_tokenizer_without_an_end_token(tiny_t5: Path, tmp_path: Path) -> None:
    folder = less_token(tiny_t5, tmp_path / "less", "eos_token")
    with pytest.raises(CarefError, match=r"the tokenizer of .*less has no eos_token; set one and save it"):
        load_tokenizer(ModelSource(str(folder)))


def test_a_tokenizer_without_a_padding_token_pads_with_its_end(
    tiny_t5: Path, tiny_gpt2: Path, tiny_qwen2: Path, tmp_path: Path
) -> None:
    for path in (less_token(tiny_t5, tmp_path / "less", "pad_token"), tiny_gpt2):
        tokenizer = load_tokenizer(ModelSource(str(path)))
        assert tokenizer.pad_token == tokenizer.eos_token
        padded = tokenizer(["the dog sleeps", "yes"], padding=True)
        assert padded.input_ids[1][-1] == tokenizer.eos_token_id
        assert padded.attention_mask[1][-1] == 0
    kept = load_tokenizer(ModelSource(str(tiny_qwen2)))
    assert (kept.pad_token, kept.eos_token) == ("<|endoftext|>", "<|im_end|>")


def less_token(path: Path, target: Path, token: str) -> Path:
    """A copy of a model's directory whose tokenizer lacks a token."""
    folder = copy_with(path, target)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    del config[token]
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("model_type", ["bert", "roberta", "vit", "clip"])
def test_what_does_not_write_text(tmp_path: Path, model_type: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    told = f"'{model_type}' is not an encoder-decoder model, nor a decoder-only one: it does not write text"
    # Before any weights are looked for: there are none.
    with pytest.raises(CarefError, match=f"^{told}$"):
        load(tmp_path)
    with pytest.raises(CarefError, match=told):
        empty_model(AutoConfig.for_model(model_type))


def test_bert_configured_as_a_decoder_writes_text() -> None:
    config = AutoConfig.for_model("bert", is_decoder=True, num_hidden_layers=1)
    assert type(empty_model(config)).__name__ == "BertLMHeadModel"


def test_a_decoder_only_model_is_loaded(tiny_decoder: Path) -> None:
    model = load(tiny_decoder)
    config = load_config(ModelSource(str(tiny_decoder)))
    empty = empty_model(config)
    assert type(model) is type(empty)
    assert type(model).__name__.endswith(("ForCausalLM", "LMHeadModel"))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    assert shapes == {name: parameter.shape for name, parameter in empty.named_parameters()}
    # A tied output layer is one matrix with the embedding, and counts once.
    tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert tied == config.tie_word_embeddings
    assert ("lm_head.weight" in shapes) != tied


def test_missing_weights_of_a_decoder_only_model(tiny_llama: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = copy_with(tiny_llama, tmp_path / "holes")
    weights = load_file(folder / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CarefError, match=r"holes lacks 1 weights of its architecture: lm_head.weight"):
        load(folder)


def test_an_empty_model_has_no_weights_and_leaves_the_configuration_alone(tiny_t5_untied: Path) -> None:
    config = load_config(ModelSource(str(tiny_t5_untied)))
    before = config.to_dict()
    model = empty_model(config)
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    assert config.to_dict() == before
    assert model.lm_head.weight is not model.shared.weight


def test_an_untied_output_layer_is_a_matrix_of_its_own(tiny_t5: Path) -> None:
    model = load(tiny_t5)
    std = model.lm_head.weight.std()
    untie_output_layer(model)
    assert model.lm_head.weight is not model.shared.weight
    assert not torch.equal(model.lm_head.weight, model.shared.weight)
    assert model.lm_head.weight.std().item() == pytest.approx(std.item(), rel=0.1)


@pytest.mark.parametrize("bars", [True, False])
def test_quiet_transformers_puts_everything_back(bars: bool) -> None:
    level, shown = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    switch = {
        True: transformers_logging.enable_progress_bar,
        False: transformers_logging.disable_progress_bar,
    }
    try:
        transformers_logging.set_verbosity_info()
        switch[bars]()
        with pytest.raises(RuntimeError), quiet_transformers():
            assert transformers_logging.get_verbosity() == transformers_logging.ERROR
            assert not transformers_logging.is_progress_bar_enabled()
            raise RuntimeError
        assert transformers_logging.get_verbosity() == transformers_logging.INFO
        assert transformers_logging.is_progress_bar_enabled() == bars
    finally:
        transformers_logging.set_verbosity(level)
        switch[shown]()


def test_short_names(tiny_t5: Path) -> None:
    assert ModelSource(str(tiny_t5)).short_name == "tiny-t5"
    assert ModelSource(str(tiny_t5 / "config.json")).short_name == "tiny-t5"
    assert ModelSource("google/flan-t5-large").short_name == "flan-t5-large"
