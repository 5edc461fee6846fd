"""Prefix and prompt tuning: what PEFT makes of our settings."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from peft import PeftModel

from caref.errors import CarefError
from caref.methods import METHODS
from caref.models.loading import ModelSource, load_model

INPUTS = {
    "input_ids": torch.tensor([[5, 9, 13, 1]]),
    "attention_mask": torch.ones(1, 4, dtype=torch.int64),
    "decoder_input_ids": torch.tensor([[0, 8, 4]]),
}


def adapted(name: str, path: Path, **settings: int) -> PeftModel:
    model = METHODS.get(name)(**settings).apply(load_model(ModelSource(str(path))))
    assert isinstance(model, PeftModel)
    return model.eval()


def test_every_layer_has_a_prefix_of_its_own(tiny_model: Path) -> None:
    """PEFT shares them between the layers of an encoder-decoder where their number is even."""
    model = adapted("prefix", tiny_model, virtual_tokens=3)
    layers = 2
    model(**INPUTS).logits.square().sum().backward()
    gradient = model.prompt_encoder["default"].embedding.weight.grad
    assert gradient is not None
    size = model.peft_config["default"].token_dim
    used = [bool(part.abs().sum() > 0) for part in gradient.split(size, dim=1)]
    assert sum(used) == 2 * layers, "a key and a value for each layer"
    assert len(used) == 2 * layers + 2, "one layer more than there are, which nothing reads"


def test_a_prompt_starts_as_words(tiny_model: Path) -> None:
    model = adapted("prompt", tiny_model, virtual_tokens=5)
    prompt = model.prompt_encoder["default"].embedding.weight
    words = model.get_base_model().get_input_embeddings().weight
    assert prompt.shape == (5, words.shape[1])
    assert all((words == row).all(dim=1).any() for row in prompt)


@pytest.mark.parametrize("name", ["prefix", "prompt"])
def test_the_same_seed_gives_the_same_start(tiny_t5: Path, name: str) -> None:
    def started(seed: int) -> torch.Tensor:
        torch.rand(seed + 5)
        model = METHODS.get(name)().apply(load_model(ModelSource(str(tiny_t5))), seed=seed)
        return model.prompt_encoder["default"].embedding.weight

    assert torch.equal(started(1), started(1))
    assert not torch.equal(started(1), started(2))


@pytest.mark.parametrize("name", ["prefix", "prompt"])
def test_none_is_no_number_of_tokens(name: str) -> None:
    with pytest.raises(CarefError, match="virtual_tokens must be at least 1, got 0"):
        METHODS.get(name)(virtual_tokens=0)
