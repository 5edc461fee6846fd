"""Tiny encoders and predictions for the metric tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from caref.generation.prediction import Prediction

GOLDEN = Path(__file__).parent / "golden"

WORDS = "a the man is not playing guitar water bank river boat milk because it keeps cold . , ? ' # ##s ##ing"


@pytest.fixture(scope="session")
def tiny_roberta() -> Path:
    return GOLDEN / "tiny-roberta"


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of 3 layers with a vocabulary of a few words and letters."""
    from transformers import BertConfig, BertModel, BertTokenizer

    directory = tmp_path_factory.mktemp("models") / "tiny-bert"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split()]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    BertTokenizer(vocab=vocabulary, model_max_length=48).save_pretrained(directory)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=48,
        initializer_range=0.3,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        BertModel(config).save_pretrained(directory)
    return directory


@pytest.fixture
def make_prediction() -> Callable[..., Prediction]:
    """A right, whole prediction; keywords change it."""

    def make(**changes: object) -> Prediction:
        fields = {
            "id": "1",
            "input": "why?",
            "gold_label": "bank",
            "gold_explanations": ("a bank is next to the river",),
            "text": "bank because a river is next to it",
            "label": "bank",
            "explanation": "a river is next to it",
            "broken": False,
        }
        return Prediction.model_validate(fields | changes)

    return make
