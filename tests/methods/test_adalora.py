"""AdaLoRA: the ranks really shrink, the penalty is the library's, and what is saved is the pruned update."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from torch import Tensor

from caref.errors import CarefError
from caref.methods.adalora import AdaLora, orthogonality_penalty
from caref.models.loading import ModelSource, load_model, quiet_peft

INPUTS = {
    "input_ids": torch.tensor([[5, 9, 13, 1], [6, 7, 1, 0]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]),
    "decoder_input_ids": torch.tensor([[0, 8, 4], [0, 5, 9]]),
}
LABELS = torch.tensor([[8, 4, 1], [5, 9, 1]])
QUERIES = r"decoder\.block\.\d+\.layer\.0\.SelfAttention\.[qv]"


def adapted(path: Path, **settings: object) -> tuple[AdaLora, PeftModel]:
    method = AdaLora(**{"initial_rank": 6, "target_rank": 2, "target_modules": QUERIES, **settings})  # type: ignore[arg-type]
    model = method.apply(load_model(ModelSource(str(path))))
    assert isinstance(model, PeftModel)
    return method, model.eval()


def singular_values(model: PeftModel) -> list[Tensor]:
    return [parameter for name, parameter in model.named_parameters() if ".lora_E." in name]


def nonzero(model: PeftModel) -> list[int]:
    return [int((values != 0).sum()) for values in singular_values(model)]


def train(method: AdaLora, model: PeftModel, steps: int) -> list[int]:
    """The number of singular values that are not 0, after each step."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    counts = []
    for step in range(1, steps + 1):
        logits = model(**INPUTS).logits
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), LABELS.flatten()).backward()
        method.before_update(model)
        optimizer.step()
        method.after_update(model, step, steps)
        optimizer.zero_grad()
        counts.append(sum(nonzero(model)))
    return counts


def test_ranks_shrink_to_their_budget(tiny_t5: Path) -> None:
    method, model = adapted(tiny_t5)
    counts = train(method, model, 20)
    updates = len(singular_values(model))
    assert updates == 4
    assert counts[1] == 6 * updates, "before the tenth part of the training nothing is pruned"
    assert counts[9] == counts[-1] == 2 * updates, "from its half on the budget is that of the end"
    assert counts[2:10] == sorted(counts[2:10], reverse=True)
    assert len(set(counts)) > 3, "the budget goes down step by step"
    pattern = model.peft_config["default"].rank_pattern
    assert sum(sum(kept) for kept in pattern.values()) == 2 * updates


@pytest.mark.parametrize("total", [2, 3, 5])
def test_a_short_training_ends_within_its_budget(tiny_t5: Path, total: int) -> None:
    method, model = adapted(tiny_t5)
    assert train(method, model, total)[-1] <= 2 * len(singular_values(model))


def test_after_a_single_step_nothing_is_known_yet(tiny_t5: Path) -> None:
    method, model = adapted(tiny_t5)
    assert train(method, model, 1)[0] > 0


@pytest.mark.parametrize(("shrink_from", "shrink_until"), [(0.0, 1.0), (0.5, 0.6)])
def test_when_ranks_shrink_is_a_setting(tiny_t5: Path, shrink_from: float, shrink_until: float) -> None:
    method, model = adapted(tiny_t5, shrink_from=shrink_from, shrink_until=shrink_until)
    counts = train(method, model, 10)
    full, end = 6 * len(singular_values(model)), 2 * len(singular_values(model))
    assert all(count == full for count in counts[: round(10 * shrink_from)])
    assert counts[round(10 * shrink_until) - 1] == end


def test_the_penalty_is_that_of_the_library(tiny_t5: Path) -> None:
    """PEFT adds it to the loss of a model that is given labels."""
    method, model = adapted(tiny_t5, orthogonality=0.5)
    inputs = {name: value for name, value in INPUTS.items() if name != "decoder_input_ids"}
    outputs = model(**inputs, labels=LABELS)
    plain = torch.nn.functional.cross_entropy(outputs.logits.flatten(0, 1), LABELS.flatten())
    torch.testing.assert_close(outputs.loss - plain, 0.5 * orthogonality_penalty(model), rtol=1e-5, atol=1e-5)

    (outputs.loss - plain).backward()
    theirs = [p.grad.clone() for n, p in model.named_parameters() if ".lora_A." in n and p.grad is not None]
    model.zero_grad()
    method.before_update(model)
    ours = [p.grad for n, p in model.named_parameters() if ".lora_A." in n]
    assert theirs
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-5)


def test_without_the_penalty_no_gradient_is_added(tiny_t5: Path) -> None:
    method, model = adapted(tiny_t5, orthogonality=0.0)
    method.before_update(model)
    assert all(p.grad is None for p in model.parameters())


def test_what_is_saved_is_pruned_and_gives_the_same(tiny_t5: Path, tmp_path: Path) -> None:
    method, model = adapted(tiny_t5)
    train(method, model, 20)
    with torch.no_grad():
        expected = model(**INPUTS).logits
    with quiet_peft(), warnings.catch_warnings(record=True) as told:
        model.save_pretrained(str(tmp_path / "adapter"))
        base = load_model(ModelSource(str(tiny_t5)))
        again = PeftModel.from_pretrained(base, str(tmp_path / "adapter")).eval()
    assert not told
    assert sum(values.numel() for values in singular_values(again)) == 2 * len(singular_values(model))
    with torch.no_grad():
        torch.testing.assert_close(again(**INPUTS).logits, expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(again.merge_and_unload()(**INPUTS).logits, expected, rtol=1e-4, atol=1e-4)


def test_the_rank_itself_is_not_trained(tiny_t5: Path) -> None:
    _, model = adapted(tiny_t5)
    numbers = [p for name, p in model.named_parameters() if ".ranknum." in name]
    assert numbers
    assert not any(p.requires_grad for p in numbers)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"initial_rank": 0}, "initial_rank must be at least 1, got 0"),
        ({"target_rank": 0}, "target_rank must be from 1 to the initial rank 32, got 0"),
        ({"target_rank": 33}, "target_rank must be from 1 to the initial rank 32, got 33"),
        ({"shrink_from": 0.6}, "shrink_from must be at least 0 and below shrink_until"),
        ({"shrink_until": 1.1}, "shrink_until, which is at most 1"),
        ({"orthogonality": -1.0}, "orthogonality must be at least 0"),
        ({"lora_dropout": 1.0}, "lora_dropout must be within"),
        ({"lora_alpha": 0.0}, "lora_alpha must be above 0"),
    ],
)
def test_settings_are_checked_at_once(settings: dict[str, float], message: str) -> None:
    with pytest.raises(CarefError, match=message):
        AdaLora(**settings)  # type: ignore[arg-type]
