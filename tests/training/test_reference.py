"""The base's logits beside the trained model's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, TaskType, get_peft_model

from caref.losses.asft import AsftObjective
from caref.losses.cross_entropy import CrossEntropyObjective
from caref.methods import METHODS
from caref.models.loading import ModelSource, load_model
from caref.training.reference import with_reference_logits

Run = Callable[..., Any]
ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "aq": lambda model: METHODS.get("aq")().apply(model),
    "dec": lambda model: METHODS.get("dec")().apply(model),
    "lora": lambda model: METHODS.get("lora")(lora_dropout=0.5).apply(model),
    "lora with trained biases": lambda model: _peft(model, LoraConfig(bias="all", target_modules=_Q)),
    "pissa": lambda model: _peft(model, LoraConfig(init_lora_weights="pissa", target_modules=_Q)),
    "prompt": lambda model: METHODS.get("prompt")().apply(model),
    "prefix": lambda model: METHODS.get("prefix")().apply(model),
    "base": lambda model: METHODS.get("base")().apply(model),
}
_Q = r".*\.(q|query|q_proj)"


def _peft(model: Any, config: Any) -> Any:
    config.task_type = TaskType.SEQ_2_SEQ_LM
    return get_peft_model(model, config)


def batch() -> dict[str, torch.Tensor]:
    return {
        "input_ids": torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]]),
        "attention_mask": torch.ones(2, 4, dtype=torch.int64),
        "decoder_input_ids": torch.tensor([[2, 5, 6], [2, 7, 8]]),
    }


def state(model: torch.nn.Module) -> dict[str, Any]:
    """All that should be as it was, but for the weights."""
    return {
        "hooks": {
            name: (
                len(module._forward_hooks),
                len(module._forward_pre_hooks),
                len(module._forward_hooks_with_kwargs),
            )
            for name, module in model.named_modules()
        },
        "modes": {name: module.training for name, module in model.named_modules()},
        "trained": {name: weight.requires_grad for name, weight in model.named_parameters()},
        "attributes": {name: sorted({*vars(m), "_disable_adapters"}) for name, m in model.named_modules()},
        "disabled": {name: getattr(m, "_disable_adapters", None) for name, m in model.named_modules()},
    }


def disturb(model: torch.nn.Module) -> None:
    """Move every trained weight, as a training does."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(torch.randn_like(weight) * 0.3)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_they_are_the_bases_whatever_was_trained(tiny_model: Path, adapter: str) -> None:
    base = load_model(ModelSource(str(tiny_model))).eval()
    with torch.no_grad():
        expected = base(**batch()).logits
    torch.manual_seed(0)
    model = ADAPTERS[adapter](copy.deepcopy(base)).train()
    before = state(model)
    with with_reference_logits(model):
        disturb(model)
        first, second = model(**batch()), model(**batch())
        assert {**state(model), "hooks": None} == {**before, "hooks": None}
    for output in (first, second):
        # PiSSA takes a decomposition of the weights apart and puts it together again.
        close = 1e-3 if adapter == "pissa" else 1e-5
        assert (output.reference_logits - expected).abs().max() < close * expected.abs().max()
        assert not output["reference_logits"].requires_grad
        assert output.logits.requires_grad
        assert not torch.allclose(output.logits, expected, rtol=1e-2, atol=1e-2)
    assert state(model) == before
    assert "reference_logits" not in model(**batch())


@pytest.mark.parametrize("adapter", ["aq", "lora", "prompt", "prefix", "base"])
def test_the_second_pass_changes_neither_gradients_nor_dropout(tiny_t5: Path, adapter: str) -> None:
    torch.manual_seed(0)
    model = ADAPTERS[adapter](load_model(ModelSource(str(tiny_t5)))).train()
    disturb(model)

    def gradients() -> list[torch.Tensor | None]:
        model.zero_grad(set_to_none=True)
        torch.manual_seed(1)
        for _ in range(2):
            model(**batch()).logits.square().sum().backward()
        return [None if weight.grad is None else weight.grad.clone() for weight in model.parameters()]

    plain = gradients()
    with with_reference_logits(model):
        beside = gradients()
    for one, other in zip(plain, beside, strict=True):
        assert (one is None) == (other is None)
        assert one is None or other is None or torch.equal(one, other)
    assert any(one is not None for one in plain)


def test_an_error_leaves_no_hook(tiny_t5: Path) -> None:
    model = load_model(ModelSource(str(tiny_t5)))
    before = state(model)
    with pytest.raises(RuntimeError, match="stop"), with_reference_logits(model):
        raise RuntimeError("stop")
    assert state(model) == before


def test_the_second_pass_is_made_in_the_given_precision(tiny_t5: Path) -> None:
    model = ADAPTERS["lora"](load_model(ModelSource(str(tiny_t5))))
    with with_reference_logits(model, autocast=lambda: torch.autocast("cpu", dtype=torch.bfloat16)):
        assert model(**batch()).reference_logits.dtype == torch.bfloat16


class Spy(AsftObjective):
    """Notes what the Trainer calls it with."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.seen: list[tuple[torch.Tensor, torch.Tensor]] = []

    def __call__(self, logits: Any, labels: Any, **options: Any) -> torch.Tensor:
        self.seen.append((logits.logits.detach().clone(), logits.reference_logits.clone()))
        return super().__call__(logits, labels, **options)


@pytest.mark.parametrize(
    # In bf16 the other kernels of a pass without gradients round too coarsely to compare a copy.
    ("method", "precision"),
    [("aq", "fp32"), ("lora", "fp32"), ("base", "fp32"), ("lora", "bf16")],
)
def test_a_training(tiny_model: Path, run: Run, method: str, precision: str) -> None:
    """The anchor is 0 at the first step and not later; dropout is off so that the passes are alike."""
    spy = Spy()
    trained = run(
        tiny_model, method=method, objective=spy, max_steps=5, batch_size=8, dropout=False,
        precision=precision, weight_decay=0.0, warmup_fraction=0.0,
    )  # fmt: skip
    assert trained.result.steps == len(spy.seen) == 5
    distances = [(logits - reference).abs().max().item() for logits, reference in spy.seen]
    # Without gradients torch may choose other kernels, which round otherwise.
    rounding = 1e-5 * spy.seen[0][0].abs().max().item()
    assert distances[0] < rounding < min(distances[1:])
    # The base does not move with the model. Batches are shuffled: compare what does not depend on order.
    sums = [reference.double().sum().item() for _, reference in spy.seen]
    assert sums == pytest.approx([sums[0]] * 5, rel=1e-3 if precision == "fp32" else 2e-2)
    assert {"dft", "anchor"} <= set(trained.log[-1])
    assert trained.log[-1]["anchor"] > 0
    for module in trained.model.modules():
        assert not module._forward_hooks_with_kwargs


@pytest.mark.parametrize("method", ["lora", "prompt", "base"])
def test_a_training_of_a_decoder_only_model(tiny_llama: Path, run: Run, method: str) -> None:
    spy = Spy(shift=True)
    trained = run(tiny_llama, method=method, objective=spy, max_steps=3, batch_size=8, dropout=False)
    assert all(logits.shape == reference.shape for logits, reference in spy.seen)
    first, last = spy.seen[0], spy.seen[-1]
    if method != "prompt":  # its virtual tokens begin as words
        assert (first[0] - first[1]).abs().max() < 1e-4
    assert not torch.allclose(last[0], last[1], rtol=1e-3)
    assert trained.log[-1]["anchor"] > 0


def test_gradient_checkpointing(tiny_t5: Path, run: Run) -> None:
    results = [
        run(
            tiny_t5,
            method="lora",
            objective=AsftObjective(),
            max_steps=3,
            dropout=False,
            gradient_checkpointing=on,
        )
        for on in (False, True)
    ]
    for name, weight in results[0].weights.items():
        torch.testing.assert_close(weight, results[1].weights[name], rtol=1e-3, atol=1e-4)


def test_a_heavy_anchor_holds_the_model(tiny_t5: Path, run: Run) -> None:
    free, held = (
        run(
            tiny_t5, method="base", objective=AsftObjective(lambda_anchor=weight), max_steps=20, dropout=False
        )
        for weight in (0.0, 100.0)
    )
    assert held.log[-1]["anchor"] < 0.1 * free.log[-1]["anchor"]


def test_other_objectives_make_one_pass(tiny_t5: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("a second pass")

    monkeypatch.setattr("caref.training.train.with_reference_logits", fail)
    run(tiny_t5, objective=CrossEntropyObjective(), max_steps=1)


def test_a_resumed_training_is_anchored_to_the_base(tiny_t5: Path, run: Run, tmp_path: Path) -> None:
    """Not to the checkpoint: the copy is made before it is loaded."""
    sums = []
    for epochs in (1, 2):
        spy = Spy()
        run(
            tiny_t5, method="base", objective=spy, epochs=epochs, batch_size=8, dropout=False,
            schedule="constant", checkpoint_epochs=1, work_dir=tmp_path / "work",
        )  # fmt: skip
        assert len(spy.seen) == 1
        sums.append(spy.seen[0][1].double().sum().item())
    assert sums[1] == pytest.approx(sums[0], rel=1e-3)
