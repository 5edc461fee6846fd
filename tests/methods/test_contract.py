"""Every method on every kind of model: what moves, what stays, what is saved, what is loaded again."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from torch import Tensor

import families
from caref.methods import METHODS
from caref.methods.counting import count_for_config, count_parameters
from caref.models.loading import ModelSource, load_config, load_model


def _beside(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"methods_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


expected, inputs_of = _beside("expected"), _beside("conftest").inputs_of

# The method of a file of the user's own has tests of its own.
ADAPTERS = [name for name in METHODS.names() if name not in ("base", "peft")]


def each(names: Iterable[str]) -> list[Any]:
    """Methods as parameters of a test; what is only another rank takes its turn with the slow tests."""
    again = ("lora-r4", "lora-r128")
    return [pytest.param(name, marks=pytest.mark.slow) if name in again else name for name in names]


def plain(name: str) -> str:
    """The base model's name for a weight of an adapter."""
    for part in ("base_model.model.", ".ln_tuning_layers", ".default", ".base_layer"):
        name = name.replace(part, "")
    return name


def whole(name: str) -> str:
    """The name under which a weight of q alone is saved."""
    return name.replace(".query_weight", ".weight").replace(".query_bias", ".bias")


def trained(model: torch.nn.Module) -> dict[str, Tensor]:
    return {plain(name): p for name, p in model.named_parameters() if p.requires_grad}


def some_steps(model: torch.nn.Module, inputs: dict[str, Tensor]) -> None:
    """A few steps with weight decay over *all* weights, frozen ones included."""
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    labels = inputs.get("decoder_input_ids", inputs["input_ids"])
    model.train()
    for _ in range(3):
        # A prompt's own positions come first.
        logits = model(**inputs).logits[:, -labels.shape[1] :]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()


@torch.no_grad()
def logits(model: torch.nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    return model.eval()(**inputs).logits


def test_every_family_and_method_has_its_names() -> None:
    assert set(expected.EXPECTED) == {name.replace("_", "-") for name in families.ALL}
    assert all(set(names) == set(ADAPTERS) for names in expected.EXPECTED.values())


def test_base_trains_everything_and_has_no_adapter(load: Callable[[], torch.nn.Module]) -> None:
    model = load()
    model.requires_grad_(False)
    applied = METHODS.get("base")().apply(model)
    assert applied is model
    assert not isinstance(applied, PeftModel)
    assert all(p.requires_grad for p in applied.parameters())


@pytest.mark.parametrize("method", each(["base", *ADAPTERS]))
def test_exactly_these_weights_are_trained_and_move(
    tiny_any: Path, load: Callable[[], torch.nn.Module], inputs: dict[str, Tensor], method: str
) -> None:
    model = load()
    untouched = logits(model, inputs)
    everything = sum(p.numel() for p in model.parameters())
    model = METHODS.get(method)().apply(model)
    own = trained(model)
    if method != "base":
        assert set(own) == expected.EXPECTED[tiny_any.name][method]
    # A new adapter changes nothing yet.
    if method not in expected.VIRTUAL:
        assert torch.equal(logits(model, inputs), untouched)

    count, size = count_parameters(model), sum(p.numel() for p in own.values())
    assert count.trainable == size
    assert count.total == everything + (0 if method in (*expected.COPIES, "base") else size)
    assert count_for_config(METHODS.get(method)(), load_config(ModelSource(str(tiny_any)))) == count

    before = {name: weight.detach().clone() for name, weight in model.state_dict().items()}
    moving = {name for name, weight in model.named_parameters() if weight.requires_grad}
    tied = {
        whole(name)
        for name, weight in model.named_parameters(remove_duplicate=False)
        if any(weight is other for key, other in model.named_parameters() if key in moving)
    }
    some_steps(model, inputs)
    without_gradient = {name for name, p in model.named_parameters() if name in moving and p.grad is None}
    # BERT's pooler is of no use to a decoder; only base trains it at all.
    assert all(".pooler." in name for name in without_gradient)
    assert not without_gradient or method == "base"
    for name, after in model.state_dict().items():
        assert torch.equal(after, before[name]) == (name not in tied or name in without_gradient), name


@pytest.mark.parametrize("method", each(name for name in ADAPTERS if name not in expected.VIRTUAL))
def test_merging_gives_the_same_answers(
    load: Callable[[], torch.nn.Module], inputs: dict[str, Tensor], method: str
) -> None:
    model = METHODS.get(method)().apply(load()).double()
    untrained = logits(model, inputs)
    some_steps(model, inputs)
    before = logits(model, inputs)
    assert not torch.allclose(before, untrained, atol=1e-2)
    merged = model.merge_and_unload()
    assert not isinstance(merged, PeftModel)
    # A product or scale is taken in another order; the copied modules are put in place as they are.
    tolerance = 0.0 if method in expected.COPIES else 1e-10
    torch.testing.assert_close(logits(merged, inputs), before, rtol=tolerance, atol=tolerance)
    fresh = load()
    assert {name for name, _ in merged.named_parameters()} == {name for name, _ in fresh.named_parameters()}
    assert {name: type(m) for name, m in merged.named_modules()} == {
        name: type(m) for name, m in fresh.named_modules()
    }


RELOAD = """
import json, sys
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

for job in json.load(open(sys.argv[1])):
    inputs = load_file(job["inputs"])
    expected = inputs.pop("logits")
    loader = AutoModelForSeq2SeqLM if "decoder_input_ids" in inputs else AutoModelForCausalLM
    base = loader.from_pretrained(job["base"], dtype=torch.float32)
    model = PeftModel.from_pretrained(base, job["adapter"]).eval()
    with torch.no_grad():
        torch.testing.assert_close(model(**inputs).logits, expected, rtol=0, atol=1e-6)
        if job["merge"]:
            merged = model.merge_and_unload()
            torch.testing.assert_close(merged(**inputs).logits, expected, rtol=0, atol=1e-6)
assert not any(name.split(".")[0] == "caref" for name in sys.modules)
print("same")
"""


@pytest.mark.slow
def test_an_adapter_holds_what_was_trained_and_loads_without_caref(
    request: pytest.FixtureRequest, batch: Tensor, tmp_path: Path
) -> None:
    jobs = []
    for family in families.ALL:
        base: Path = request.getfixturevalue(family)
        inputs = inputs_of(base, batch)
        for method in ADAPTERS:
            model = METHODS.get(method)().apply(load_model(ModelSource(str(base))))
            some_steps(model, inputs)
            folder = tmp_path / family / method
            model.save_pretrained(str(folder))
            assert not list(folder.glob("*.bin"))
            stored = load_file(folder / "adapter_model.safetensors")
            # The embeddings of a prompt have a name of their own, and no other weight.
            kept = {
                plain(name).replace("prompt_embeddings", "prompt_encoder.embedding.weight"): weight
                for name, weight in stored.items()
            }
            own = trained(model)
            assert set(kept) == {whole(name) for name in own}
            for name, weight in own.items():
                if whole(name) == name:
                    assert torch.equal(kept[name], weight), name
            # Bytes on disk: four for each weight, and the names.
            header = 200 * len(own) + 1000
            size = (folder / "adapter_model.safetensors").stat().st_size
            weights = sum(weight.numel() for weight in kept.values())
            assert 0 < size - 4 * weights < header
            if method != "adalora":
                trainable = count_parameters(model).trainable
                assert (weights > trainable) == any(whole(name) != name for name in own)
                assert trainable <= weights <= 3 * trainable
            answers = folder / "answers.safetensors"
            save_file({**inputs, "logits": logits(model, inputs)}, answers)
            merge = method in expected.COPIES
            jobs.append({"base": str(base), "adapter": str(folder), "inputs": str(answers), "merge": merge})
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    run = subprocess.run(
        [sys.executable, "-c", RELOAD, str(tmp_path / "jobs.json")],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert run.stdout.strip().endswith("same"), run.stderr[-3000:]


def test_lora_starts_the_same_for_the_same_seed(tiny_t5: Path) -> None:
    def started(seed: int) -> dict[str, Tensor]:
        torch.rand(seed + 3)  # what happened before must not matter
        return trained(METHODS.get("lora")().apply(load_model(ModelSource(str(tiny_t5))), seed=seed))

    one, again, other = started(1), started(1), started(2)
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_applying_a_method_leaves_the_random_numbers_alone(tiny_t5: Path) -> None:
    model = load_model(ModelSource(str(tiny_t5)))
    state = torch.get_rng_state()
    METHODS.get("lora")().apply(model)
    assert torch.equal(torch.get_rng_state(), state)
