from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from caref.starter.pretraining import Recipe, pretrain

TINY = Recipe(
    steps=6, copying_steps=2, batch=4, d_model=32, d_ff=32, heads=2, encoder_layers=1, decoder_layers=1
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("trained")
    pretrain(TINY, directory, environment={"python": "3"}, log_every=3)
    return directory


def test_it_leaves_a_model_that_loads(trained: Path) -> None:
    model = AutoModelForSeq2SeqLM.from_pretrained(trained, dtype="float32")
    assert model.config.d_model == TINY.d_model
    assert model.config.vocab_size == len(AutoTokenizer.from_pretrained(trained))
    assert model.lm_head.weight is model.shared.weight


def test_it_logs_what_was_learnt_when(trained: Path) -> None:
    rows = [json.loads(line) for line in (trained / "training.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [3, 6]
    assert {"loss", "copy", "pick", "choice", "pair", "follows", "recall"} <= rows[0].keys()


def test_the_record_tells_recipe_and_hash(trained: Path) -> None:
    import hashlib

    record = json.loads((trained / "recipe.json").read_text())
    assert record["recipe"] == asdict(TINY)
    assert (
        record["weights_sha256"] == hashlib.sha256((trained / "model.safetensors").read_bytes()).hexdigest()
    )
    assert record["environment"] == {"python": "3"}


def test_the_same_recipe_gives_the_same_bytes(trained: Path, tmp_path: Path) -> None:
    pretrain(TINY, tmp_path)
    for name in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / name).read_bytes() == (trained / name).read_bytes(), name
    pretrain(Recipe(**{**asdict(TINY), "seed": 1}), tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() != (trained / "model.safetensors").read_bytes()
