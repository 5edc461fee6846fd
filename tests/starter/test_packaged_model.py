"""The weights that are shipped: what they are, that they say the same everywhere, and what they know."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from caref.models.loading import ModelSource, load_model, load_tokenizer
from caref.starter.lessons import Teacher
from caref.starter.pretraining import Recipe
from caref.tasks import get_task
from caref.tasks.starter.world import load_world

SOURCE = ModelSource("starter")
FOLDER = Path(SOURCE.location)


@pytest.fixture(scope="module")
def model() -> PreTrainedModel:
    return load_model(SOURCE).eval()


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return load_tokenizer(SOURCE)


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def answers(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, count: int = 40) -> list[str]:
    prompts = [
        get_task(name).prompts["feb"].render(example).input
        for name in ("starter_choice5", "starter_nli")
        for example in get_task(name).load(None, "test").examples[: count // 2]
    ]
    batch = tokenizer(prompts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        ids = model.generate(
            input_ids=batch.input_ids, attention_mask=batch.attention_mask, max_new_tokens=24, do_sample=False
        )
    return tokenizer.batch_decode(ids, skip_special_tokens=True)


def test_its_hash_is_that_of_the_recipe() -> None:
    record = json.loads((FOLDER / "recipe.json").read_text())
    weights = FOLDER / "model.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == record["weights_sha256"]
    assert Recipe(**record["recipe"]) == Recipe(), "the recipe has changed: train the model anew"
    assert not record["environment"]["commit"].endswith("-modified")


def test_it_is_small(model: PreTrainedModel) -> None:
    assert 2e6 <= sum(parameter.numel() for parameter in model.parameters()) <= 4e6
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= 10 * 2**20


def test_its_tokenizer_writes_the_world_in_words(tokenizer: PreTrainedTokenizerBase) -> None:
    words = Teacher(load_world(), random.Random(0)).words
    assert sum(len(tokenizer(word).input_ids) == 2 for word in words) >= 0.98 * len(words)


def test_it_says_the_same_after_a_reload_and_on_other_threads(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    said = answers(model, tokenizer)
    assert len(set(said)) > 20
    model.save_pretrained(tmp_path)
    for again, count in ((load_model(SOURCE), 2), (load_model(ModelSource(str(tmp_path))), 1)):
        with threads(count):
            assert answers(again.eval(), tokenizer) == said


def test_it_copies_and_recalls(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """What its training log says of its last step holds of the file."""
    from caref.starter.pretraining import exercises, measure

    told = json.loads((FOLDER / "training.jsonl").read_text().splitlines()[-1])
    measured = measure(model, tokenizer, exercises())
    for kind, share in measured.items():
        assert share == pytest.approx(told[kind], abs=0.02), kind
