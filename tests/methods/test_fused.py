"""Where one matrix holds q, k and v: of the whole matrix, q alone is trained."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from peft.utils import get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.pytorch_utils import Conv1D

from caref.errors import CarefError
from caref.methods import METHODS
from caref.methods.counting import count_parameters
from caref.methods.fused import QueryOfFused, QueryTuningLayer, tune_query_only
from caref.models.architectures import attention_shape, query_layout
from caref.models.loading import ModelSource, load_config, load_model

# Four heads of 8 features: which output features of the matrix are q's, counted by hand.
Q_FEATURES = {
    "tiny_gpt2": list(range(32)),
    "tiny_phi3": list(range(32)),
    "tiny_gpt_neox": [24 * head + feature for head in range(4) for feature in range(8)],
}
FEATURES = {"tiny_gpt2": 96, "tiny_phi3": 32 + 2 * 16, "tiny_gpt_neox": 96}
TOKENS = torch.arange(4, 40).reshape(3, 12)


@pytest.fixture(params=list(Q_FEATURES))
def fused(request: pytest.FixtureRequest) -> tuple[str, Path]:
    return request.param, request.getfixturevalue(request.param)


def load(path: Path) -> Any:
    return load_model(ModelSource(str(path))).eval()


def applied(path: Path, method: str = "aq") -> PeftModel:
    return METHODS.get(method)().apply(load(path))


def copies(model: torch.nn.Module) -> dict[str, QueryTuningLayer]:
    return {name: m for name, m in model.named_modules() if isinstance(m, QueryTuningLayer)}


def by_feature(layer: torch.nn.Module, name: str, tensor: Tensor) -> Tensor:
    """A weight or bias with its output features first."""
    return tensor.T if isinstance(layer, Conv1D) and name == "weight" else tensor


def steps(model: torch.nn.Module, number: int = 3) -> torch.optim.Optimizer:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    for _ in range(number):
        optimizer.zero_grad()
        model(input_ids=TOKENS, labels=TOKENS).loss.backward()
        optimizer.step()
    return optimizer


@torch.no_grad()
def logits(model: torch.nn.Module) -> Tensor:
    return model.eval()(input_ids=TOKENS).logits


@pytest.mark.parametrize("method", ["aq", "laq"])
def test_k_and_v_stay_to_the_bit_and_all_of_q_moves(fused: tuple[str, Path], method: str) -> None:
    family, path = fused
    model = applied(path, method)
    steps(model)
    assert len(copies(model)) == 2
    is_query = torch.zeros(FEATURES[family], dtype=torch.bool)
    is_query[Q_FEATURES[family]] = True
    for layer in copies(model).values():
        for name, before in layer.base_layer.named_parameters():
            old = by_feature(layer.base_layer, name, before)
            new = by_feature(layer.base_layer, name, layer.ln_tuning_layers["default"].whole(name))
            assert old.shape == new.shape
            assert old.shape[0] == FEATURES[family]
            assert torch.equal(new[~is_query], old[~is_query])
            assert (new[is_query] != old[is_query]).all()


def test_what_moves_is_what_attention_takes_for_q(fused: tuple[str, Path]) -> None:
    """Independent of the table: what reaches the attention function of the first layer."""
    seen: list[tuple[Tensor, Tensor, Tensor]] = []
    eager = ALL_ATTENTION_FUNCTIONS["sdpa"]

    def recording(module: Any, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **kwargs: Any) -> Any:
        seen.append((query, key, value))
        return eager(module, query, key, value, *rest, **kwargs)

    def first_layer(model: Any) -> tuple[Tensor, Tensor, Tensor]:
        seen.clear()
        model.set_attn_implementation("recording")
        logits(model)
        return seen[0]

    ALL_ATTENTION_FUNCTIONS.register("recording", recording)
    try:
        model = applied(fused[1])
        steps(model)
        trained = first_layer(model.get_base_model())
        plain = first_layer(load(fused[1]))
    finally:
        del ALL_ATTENTION_FUNCTIONS._global_mapping["recording"]
    assert (trained[0] != plain[0]).float().mean() > 0.99
    assert torch.equal(trained[1], plain[1])
    assert torch.equal(trained[2], plain[2])


def test_only_q_has_a_gradient_and_a_place_in_the_optimizer(fused: tuple[str, Path]) -> None:
    family, path = fused
    model = applied(path)
    optimizer = steps(model, 1)
    kept = sum(value.numel() for state in optimizer.state.values() for value in (state["exp_avg"],))
    per_feature = 32 + (family != "tiny_phi3")  # a bias, but for Phi-3
    assert kept == count_parameters(model).trainable == 2 * 32 * per_feature
    assert count_parameters(model).total == sum(p.numel() for p in load(path).parameters())


def test_nothing_that_frees_parameters_reaches_k_and_v(fused: tuple[str, Path]) -> None:
    model = applied(fused[1])
    plain = logits(load(fused[1]))
    before = {name for name, p in model.named_parameters() if p.requires_grad}
    steps(model)
    with model.disable_adapter():
        assert torch.equal(logits(model), plain)
    # PEFT frees every parameter of the adapter when it is switched on.
    model.set_adapter("default")
    assert {name for name, p in model.named_parameters() if p.requires_grad} == before
    assert not torch.equal(logits(model), plain)


@pytest.mark.parametrize("method", ["aq", "laq"])
def test_the_file_holds_the_whole_matrix(fused: tuple[str, Path], tmp_path: Path, method: str) -> None:
    family, path = fused
    model = applied(path, method)
    steps(model)
    model.save_pretrained(str(tmp_path))
    stored = load_file(tmp_path / "adapter_model.safetensors")
    assert not any("query_" in name.split(".")[-1] or "rest_" in name for name in stored)
    base = dict(load(path).named_parameters())
    for name, weight in stored.items():
        plain = name.removeprefix("base_model.model.").replace(".ln_tuning_layers", "")
        assert weight.shape == base[plain].shape
    factor = sum(w.numel() for w in stored.values()) / count_parameters(model).trainable
    if method == "aq":
        assert factor == FEATURES[family] / 32

    again = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(path), str(tmp_path)).eval()
    assert torch.equal(logits(again), logits(model))
    assert not copies(again)
    assert torch.equal(logits(again.merge_and_unload()), logits(model))


def test_an_adapter_is_loaded_into_the_model_that_trains(fused: tuple[str, Path], tmp_path: Path) -> None:
    model = applied(fused[1])
    steps(model)
    model.save_pretrained(str(tmp_path))
    state = get_peft_model_state_dict(model)

    for way in ("load_adapter", "state_dict"):
        other = applied(fused[1])
        before = {name: p for name, p in other.named_parameters() if p.requires_grad}
        optimizer = torch.optim.AdamW(before.values(), lr=1e-2)
        if way == "load_adapter":
            told = other.load_adapter(str(tmp_path), "default", is_trainable=True)
        else:
            told = set_peft_model_state_dict(other, state)
        assert not told.unexpected_keys
        assert not [name for name in told.missing_keys if "ln_tuning" in name]
        assert torch.equal(logits(other), logits(model))
        after = {name: p for name, p in other.named_parameters() if p.requires_grad}
        assert all(after[name] is parameter for name, parameter in before.items())
        assert set(after) == set(before)
        other(input_ids=TOKENS, labels=TOKENS).loss.backward()
        optimizer.step()
        assert not torch.equal(logits(other), logits(model))


def test_a_training_goes_on_where_it_stopped(fused: tuple[str, Path], tmp_path: Path) -> None:
    rows = [{"input_ids": row, "labels": row} for row in TOKENS]

    def train(folder: Path, resume: bool) -> dict[str, Tensor]:
        arguments = TrainingArguments(
            str(folder), max_steps=4, save_steps=2, per_device_train_batch_size=1, report_to=[],
            learning_rate=1e-2, weight_decay=0.1, use_cpu=True, disable_tqdm=True,
            lr_scheduler_type="constant",
        )  # fmt: skip
        model = applied(fused[1])
        Trainer(model, arguments, train_dataset=rows).train(resume_from_checkpoint=resume)
        return get_peft_model_state_dict(model)

    whole = train(tmp_path / "one", False)
    shutil.rmtree(tmp_path / "one" / "checkpoint-4")
    resumed = train(tmp_path / "one", True)
    assert whole
    assert all(torch.equal(weight, resumed[name]) for name, weight in whole.items())


def test_merged_for_a_while(fused: tuple[str, Path]) -> None:
    model = applied(fused[1])
    steps(model)
    expected = logits(model)
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    model.merge_adapter()
    for layer in copies(model).values():
        assert type(layer.base_layer) in (torch.nn.Linear, Conv1D)
        assert not any(isinstance(module, QueryOfFused) for module in layer.modules())
    assert torch.equal(logits(model), expected)
    model.unmerge_adapter()
    assert torch.equal(logits(model), expected)
    after = {name: p for name, p in model.named_parameters() if p.requires_grad}
    assert all(after[name] is parameter for name, parameter in parameters.items())
    with model.disable_adapter():
        assert torch.equal(logits(model), logits(load(fused[1])))


def test_a_copy_of_the_model_is_one_of_its_own(fused: tuple[str, Path]) -> None:
    model = applied(fused[1])
    twin = copy.deepcopy(model)
    before = logits(model)
    steps(twin)
    assert torch.equal(logits(model), before)
    assert not torch.equal(logits(twin), before)


@pytest.mark.parametrize("method", ["aq", "laq"])
def test_an_expression_of_ones_own_trains_the_whole_matrix(tiny_gpt2: Path, method: str) -> None:
    model = METHODS.get(method)(target_modules=r"transformer\.h\.1\.attn\.c_attn").apply(load(tiny_gpt2))
    assert not copies(model)
    assert count_parameters(model).trainable == 96 * 32 + 96


def test_q_k_and_v_together_are_the_whole_matrix(fused: tuple[str, Path]) -> None:
    model = applied(fused[1], "aqkv")
    assert not copies(model)
    assert count_parameters(model).trainable == 2 * FEATURES[fused[0]] * (32 + (fused[0] != "tiny_phi3"))


def test_where_q_lies(tiny_llama: Path, tiny_gpt2: Path, tiny_phi3: Path, tiny_gpt_neox: Path) -> None:
    paths = (tiny_llama, tiny_gpt2, tiny_phi3, tiny_gpt_neox)
    configs = [load_config(ModelSource(str(path))) for path in paths]
    assert [query_layout(config) for config in configs] == [None, (1, 32), (1, 32), (4, 8)]
    assert [attention_shape(config) for config in configs] == [(2, 2, 8), (2, 4, 8), (2, 2, 8), (2, 4, 8)]


@pytest.mark.parametrize(("groups", "width"), [(1, 96), (5, 8), (4, 24)])
def test_a_matrix_of_another_shape(tiny_gpt2: Path, groups: int, width: int) -> None:
    model = METHODS.get("aqkv")().apply(load(tiny_gpt2))
    with pytest.raises(CarefError, match=r"^transformer.h.0.attn.c_attn has 96 output features, which"):
        tune_query_only(model, r"transformer\.h\.\d+\.attn\.c_attn", groups=groups, width=width)
