"""A model whose logits are promised trains as it does without, and is afterwards what it was."""

from __future__ import annotations

import copy
import importlib.util
import io
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.hooks import ModelHook, add_hook_to_module
from peft import PeftModel
from safetensors.torch import load_file
from torch import Tensor, nn

from caref.kernels import DeferredLogits, defer_head
from caref.kernels.head import why_not_deferred

SCRIPT = Path(__file__).with_name("deferred_training.py")
_spec = importlib.util.spec_from_file_location("deferred_training", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
training = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(training)
load, with_adapter = training.load, training.with_adapter
make_batch, make_loss = training.make_batch, training.make_loss

Outcome = dict[str, Tensor]


@pytest.fixture(autouse=True)
def computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[torch.Size]]:
    """The shapes of the promised logits that were computed after all."""
    shapes, compute = [], DeferredLogits.compute

    def spy(self: DeferredLogits) -> Tensor:
        shapes.append(self.shape)
        return compute(self)

    monkeypatch.setattr(DeferredLogits, "compute", spy)
    return shapes


def gradients(model: Any, value: Tensor) -> Outcome:
    """The value, and the gradient of every parameter that has one."""
    model.zero_grad()
    value.backward()
    found = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    assert found
    return {"value": value.detach(), **found}


def outcome(model: Any, *, fused: bool) -> Outcome:
    """Of one forward and backward pass."""
    batch, labels = make_batch(model)
    loss = make_loss(model, fused="auto" if fused else "off")
    outputs = model(**batch)
    assert isinstance(outputs.logits, DeferredLogits if fused else Tensor)
    # The embeddings of prompt tuning have logits too.
    outputs["logits"] = outputs["logits"][:, -labels.shape[1] :]
    found = gradients(model, loss(outputs, labels))
    assert loss.ran == ("chunked, from hidden states" if fused else "eager")
    return found


def check_equal(found: Outcome, expected: Outcome, tolerance: float = 1e-9) -> None:
    assert found.keys() == expected.keys()
    # By the largest: some gradients are 0 but for rounding, such as that of a key's bias.
    largest = max(each.abs().max().item() for each in expected.values())
    assert largest > 0.01
    for name, right in expected.items():
        assert found[name].dtype == right.dtype, name
        torch.testing.assert_close(found[name], right, rtol=tolerance, atol=tolerance * largest, msg=name)


def check_same(found: Any, expected: Any) -> None:
    """Two state dicts are one, to the last bit."""
    assert list(found) == list(expected)
    for name, right in expected.items():
        assert found[name].dtype == right.dtype, name
        assert torch.equal(found[name], right), name


# --- every family -----------------------------------------------------------------------------------


def test_value_and_gradients_are_those_of_the_logits(tiny_any: Path, computed: list[torch.Size]) -> None:
    model = load(tiny_any)
    expected = outcome(model, fused=False)
    with defer_head(model):
        check_equal(outcome(model, fused=True), expected)
    assert computed == []


def test_a_bias_beside_the_head(tiny_bart: Path, computed: list[torch.Size]) -> None:
    model = load(tiny_bart)
    model.final_logits_bias.normal_(generator=torch.Generator().manual_seed(0))
    expected = outcome(model, fused=False)
    with defer_head(model):
        check_equal(outcome(model, fused=True), expected)
        assert torch.equal(model(**make_batch(model)[0]).logits.bias, model.final_logits_bias[0])
    assert computed == []


SIZES = {
    "vocab_size": 120, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "settings", "made_of_them"),
    [
        ("gemma2", {"final_logit_softcapping": 1.5}, {"scale": pytest.approx(1.0), "softcap": 1.5}),
        ("cohere", {"logit_scale": 3.0}, {"scale": 3.0, "softcap": None}),
        ("granite", {"logits_scaling": 0.3}, {"scale": pytest.approx(1 / 0.3), "softcap": None}),
    ],
)
def test_what_else_models_do_to_logits(
    kind: str, settings: dict[str, float], made_of_them: dict[str, Any], computed: list[torch.Size]
) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **SIZES, **settings)).double()
        for weight in model.parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.3)
    model.train()
    expected = outcome(model, fused=False)
    with defer_head(model):
        check_equal(outcome(model, fused=True), expected)
        logits = model(**make_batch(model)[0]).logits
    assert {"scale": logits.scale, "softcap": logits.softcap} == made_of_them
    assert computed == []


def test_afterwards_the_model_is_what_it_was(tiny_any: Path) -> None:
    model = load(tiny_any)
    head, batch = model.get_output_embeddings(), make_batch(model)[0]
    attributes, weights = set(vars(head)), {k: v.clone() for k, v in model.state_dict().items()}
    expected = model(**batch).logits

    def check() -> None:
        assert model.get_output_embeddings() is head
        assert type(head) is nn.Linear
        assert set(vars(head)) == attributes
        check_same(model.state_dict(), weights)
        assert torch.equal(model(**batch).logits, expected)

    handle = defer_head(model)
    assert isinstance(model(**batch).logits, DeferredLogits)
    check_same(model.state_dict(), weights)
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    assert b"caref" not in buffer.getvalue()
    handle.remove()
    check()
    handle.remove()
    check()
    with pytest.raises(KeyError), defer_head(model):
        assert isinstance(model(**batch).logits, DeferredLogits)
        raise KeyError
    check()
    with defer_head(model) as handle:
        handle.remove()
        check()
    check()


def test_the_models_own_loss(tiny_any: Path) -> None:
    model = load(tiny_any)
    batch, labels = make_batch(model)
    expected = gradients(model, model(**batch, labels=labels).loss)
    with defer_head(model):
        outputs = model(**batch, labels=labels)
        assert isinstance(outputs.logits, DeferredLogits)
        check_equal(gradients(model, outputs.loss), expected)


def test_checkpointed_activations(tiny_any: Path, computed: list[torch.Size]) -> None:
    model = load(tiny_any)
    expected = outcome(model, fused=False)
    model.gradient_checkpointing_enable()
    with defer_head(model):
        check_equal(outcome(model, fused=True), expected)
    assert computed == []


def test_without_gradients_it_gives_tensors(tiny_any: Path, computed: list[torch.Size]) -> None:
    model = load(tiny_any)
    batch = make_batch(model)[0]
    prompt = {name: batch[name] for name in ("input_ids", "attention_mask")}
    answers, logits = {}, {}
    for deferred in (False, True):
        handle = defer_head(model) if deferred else None
        for training_mode in (True, False):
            model.train(training_mode)
            key = (deferred, training_mode)
            answers[key] = model.generate(**prompt, max_new_tokens=6, do_sample=False)
            with torch.no_grad():
                logits[key] = model(**batch).logits
        logits[deferred, "with gradients"] = model(**batch).logits
        if handle is not None:
            handle.remove()
    assert computed == []
    for (deferred, mode), each in (answers | logits).items():
        assert isinstance(each, Tensor)
        assert not deferred or torch.equal(each, (answers | logits)[False, mode])
    for mode in (True, False):
        assert torch.equal(answers[True, mode], answers[False, mode])


def test_a_promise_is_computed_where_asked(tiny_llama: Path, computed: list[torch.Size]) -> None:
    model = load(tiny_llama)
    expected = outcome(model, fused=False)
    batch, labels = make_batch(model)
    with defer_head(model):
        check_equal(gradients(model, make_loss(model, fused="off")(model(**batch), labels)), expected)
    assert len(computed) == 1


# --- what is refused --------------------------------------------------------------------------------


class Named(nn.Module):
    """A model that names its head."""

    def __init__(self, head: nn.Module | None) -> None:
        super().__init__()
        self.head = head

    def get_output_embeddings(self) -> nn.Module | None:
        return self.head


class Wider(nn.Linear):
    pass


def quantized() -> nn.Linear:
    head = nn.Linear(2, 3)
    head.weight = nn.Parameter(torch.ones(3, 2, dtype=torch.int8), requires_grad=False)
    return head


def hooked(add: Callable[[nn.Linear], Any]) -> nn.Linear:
    head = nn.Linear(2, 3)
    add(head)
    return head


ACTED_ON = "something else already acts on its output head"
REFUSED: dict[str, tuple[nn.Module, str]] = {
    "no method": (nn.Sequential(nn.Linear(2, 3)), "it names no output head (get_output_embeddings)"),
    "no head": (Named(None), "it names no output head (get_output_embeddings)"),
    "another layer": (
        Named(nn.Conv1d(2, 3, 1)),
        "its output head is a torch.nn.modules.conv.Conv1d, not a plain torch.nn.Linear",
    ),
    "a linear layer of one's own": (
        Named(Wider(2, 3)),
        f"its output head is a {__name__}.Wider, not a plain torch.nn.Linear",
    ),
    "a forward of accelerate": (Named(hooked(lambda h: add_hook_to_module(h, ModelHook()))), ACTED_ON),
    "a forward hook": (Named(hooked(lambda h: h.register_forward_hook(print))), ACTED_ON),
    "a hook before": (Named(hooked(lambda h: h.register_forward_pre_hook(print))), ACTED_ON),
    "a backward hook": (Named(hooked(lambda h: h.register_full_backward_hook(print))), ACTED_ON),
    "a backward hook before": (Named(hooked(lambda h: h.register_full_backward_pre_hook(print))), ACTED_ON),
    "no weights": (Named(nn.Linear(2, 3, device="meta")), "its output head holds torch.float32 on meta"),
    "whole numbers": (Named(quantized()), "its output head holds torch.int8 on cpu"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_reason_is_given(name: str) -> None:
    model, reason = REFUSED[name]
    kind = type(model.get_output_embeddings()) if isinstance(model, Named) else None
    assert why_not_deferred(model) == reason
    with pytest.raises(ValueError) as error:
        defer_head(model)
    assert str(error.value) == f"the logits of {type(model).__name__} cannot be promised: {reason}"
    assert kind is None or type(model.get_output_embeddings()) is kind


def test_it_is_not_promised_twice(tiny_llama: Path) -> None:
    model = load(tiny_llama)
    with defer_head(model):
        assert why_not_deferred(model) == "they are promised already"
        with pytest.raises(
            ValueError, match="LlamaForCausalLM cannot be promised: they are promised already"
        ):
            defer_head(model)
        assert isinstance(model(**make_batch(model)[0]).logits, DeferredLogits)
    assert why_not_deferred(model) is None


# --- adapters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["adapter", "promise"])
@pytest.mark.parametrize("kind", ["lora", "lora and head"])
def test_an_adapter(tiny_any: Path, kind: str, first: str, computed: list[torch.Size]) -> None:
    plain = with_adapter(load(tiny_any), kind)
    expected = outcome(plain, fused=False)
    assert any("modules_to_save" in name for name in expected) == (kind == "lora and head")
    model = load(tiny_any)
    if first == "promise":
        handle = defer_head(model)
        model = with_adapter(model, kind)
    else:
        model = with_adapter(model, kind)
        handle = defer_head(model)
    check_same(model.state_dict(), plain.state_dict())
    check_equal(outcome(model, fused=True), expected)
    assert computed == []
    handle.remove()
    check_equal(outcome(model, fused=False), expected)
    assert {type(each) for each in model.modules()} == {type(each) for each in plain.modules()}


@pytest.mark.parametrize("first", ["adapter", "promise"])
@pytest.mark.parametrize("kind", ["prompt", "prefix"])
@pytest.mark.parametrize("family", ["tiny_t5", "tiny_bart", "tiny_gpt2", "tiny_llama"])
def test_virtual_tokens(
    request: pytest.FixtureRequest, family: str, kind: str, first: str, computed: list[torch.Size]
) -> None:
    folder = request.getfixturevalue(family)
    expected = outcome(with_adapter(load(folder), kind), fused=False)
    model = load(folder)
    if first == "promise":
        with defer_head(model):
            check_equal(outcome(with_adapter(model, kind), fused=True), expected)
    else:
        model = with_adapter(model, kind)
        with defer_head(model):
            check_equal(outcome(model, fused=True), expected)
    assert computed == []


def test_an_adapter_on_the_head(tiny_llama: Path) -> None:
    """It is refused where it is there already; where it comes later, the logits are computed."""
    model = with_adapter(load(tiny_llama), "lora on the head")
    expected = outcome(model, fused=False)
    with pytest.raises(
        ValueError, match=r"output head is a peft\.tuners\.lora\.layer\.Linear, not a plain torch\.nn\.Linear"
    ):
        defer_head(model)
    base = load(tiny_llama)
    with defer_head(base):
        model = with_adapter(base, "lora on the head")
        check_equal(outcome(model, fused=False), expected)
    assert type(base.lm_head.base_layer) is nn.Linear
    check_equal(outcome(model, fused=False), expected)


@pytest.mark.parametrize("family", ["tiny_t5", "tiny_llama"])
@pytest.mark.parametrize("kind", ["lora", "lora and head"])
def test_saving_loading_and_merging(
    request: pytest.FixtureRequest, tmp_path: Path, family: str, kind: str
) -> None:
    folder = request.getfixturevalue(family)
    plain, model = with_adapter(load(folder), kind), with_adapter(load(folder), kind)
    with defer_head(model):
        for name, each in (("plain", plain), ("deferred", model)):
            each.save_pretrained(tmp_path / name)
        expected = outcome(plain, fused=False)
        base = load(folder)
        with defer_head(base):
            loaded = PeftModel.from_pretrained(base, tmp_path / "deferred", is_trainable=True).train()
            check_equal(outcome(loaded, fused=True), expected)
        plain, merged = plain.merge_and_unload(), model.merge_and_unload()
        check_same(merged.state_dict(), plain.state_dict())
        for each in (plain, merged):
            each.requires_grad_(True)
        expected = outcome(plain, fused=False)
        check_equal(outcome(merged, fused=True), expected)
        for name, each in (("merged", merged), ("merged plain", plain)):
            each.save_pretrained(tmp_path / name)
    check_same(*(load_file(tmp_path / name / "adapter_model.safetensors") for name in ("deferred", "plain")))
    assert type(merged.get_output_embeddings()) is nn.Linear
    check_equal(outcome(merged, fused=False), expected)
    check_same(*(load_file(tmp_path / name / "model.safetensors") for name in ("merged", "merged plain")))


def test_one_adapter_of_two(tiny_llama: Path, computed: list[torch.Size]) -> None:
    """Each trains a head of its own."""
    plain, model = (with_adapter(load(tiny_llama), "lora and head", "first") for _ in range(2))
    for each in (plain, model):
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(1)
            each.add_adapter("second", copy.deepcopy(each.peft_config["first"]))
            each.get_base_model().lm_head.modules_to_save["second"].weight *= 2
        each.set_adapter("second")
    with defer_head(model):
        check_equal(outcome(model, fused=True), outcome(plain, fused=False))
        assert computed == []
        for each in (plain, model):
            each.set_adapter("first")
        # This one's was not promised.
        check_equal(outcome(model, fused=False), outcome(plain, fused=False))


# --- copies -----------------------------------------------------------------------------------------


def test_a_copy_has_weights_of_its_own(tiny_llama: Path, computed: list[torch.Size]) -> None:
    model = load(tiny_llama)
    expected = outcome(model, fused=False)
    with defer_head(model):
        twin, stored = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
        with torch.no_grad():
            model.lm_head.weight.zero_()
        model.zero_grad()
        for each in (twin, stored):
            check_equal(outcome(each, fused=True), expected)
        assert model.lm_head.weight.grad is None
    check_equal(outcome(twin, fused=True), expected)
    assert computed == []


# --- trainings --------------------------------------------------------------------------------------


def without(endings: tuple[str, ...], log: list[dict[str, float]]) -> list[dict[str, float]]:
    return [{k: v for k, v in entry.items() if not k.endswith(endings)} for entry in log]


@pytest.mark.parametrize("precision", ["float64", "bf16"])
@pytest.mark.parametrize("family", ["tiny_t5", "tiny_llama"])
def test_the_trainer_logs_the_same(
    request: pytest.FixtureRequest, tmp_path: Path, family: str, precision: str, computed: list[torch.Size]
) -> None:
    """An evaluation lies between the steps, and has logits."""
    bf16 = precision == "bf16"
    logs = []
    for deferred in (False, True):
        model = load(request.getfixturevalue(family))
        log, ran = training.train(
            model.float() if bf16 else model,
            tmp_path,
            deferred=deferred,
            eval_strategy="steps",
            eval_steps=2,
            bf16=bf16,
            learning_rate=1e-3 if bf16 else 0.05,
        )
        assert ran == "chunked"  # the evaluation was last
        # In bf16 some gradients are rounding alone.
        logs.append(without(("runtime", "per_second", "flos", *(["grad_norm"] * bf16)), log))
    expected, found = logs
    steps = [entry for entry in found if "loss" in entry]
    assert {"loss", "ce", "sced", "kl"} <= steps[0].keys()
    assert steps[-1]["loss"] != pytest.approx(steps[0]["loss"], rel=1e-3)
    assert [entry["step"] for entry in found if "eval_loss" in entry] == [2, 4]
    assert [list(entry) for entry in found] == [list(entry) for entry in expected]
    for each, right in zip(found, expected, strict=True):
        assert each == pytest.approx(right, rel=0.03 if bf16 else 1e-9)
    assert found[0]["loss"] == pytest.approx(expected[0]["loss"], rel=1e-5)
    assert computed == []


def train_in_two_processes(out: Path, *folders: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    alone = {"CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    launcher = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_addr", "127.0.0.1"]
    done = subprocess.run(
        [sys.executable, *launcher, "--master_port", port, SCRIPT, out, *folders],
        capture_output=True,
        text=True,
        env={**os.environ, **alone},
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]


@pytest.mark.slow
def test_two_processes_are_one(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The Trainer asks DistributedDataParallel for parameters that a loss does not depend on."""
    folders = [request.getfixturevalue(family) for family, _ in training.CASES.values()]
    train_in_two_processes(tmp_path, *folders)
    for folder, (case, (_, adapter)) in zip(folders, training.CASES.items(), strict=True):
        model = load(folder)
        model = model if adapter is None else with_adapter(model, adapter)
        before = training.trained_weights(model)
        training.train(model, tmp_path, deferred=False)
        expected = training.trained_weights(model)
        assert any(not torch.equal(before[name], each) for name, each in expected.items())
        for rank in (0, 1):
            check_equal(load_file(tmp_path / f"{case} {rank}.safetensors"), expected, 1e-8)
