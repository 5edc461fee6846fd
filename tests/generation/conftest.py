from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from caref.models.encoding import EncodedQuestion, Encoder
from caref.models.loading import ModelSource, load_model, load_tokenizer
from caref.tasks.prompt import PromptFormat

FORMAT = PromptFormat(name="test", input="{text}", context="text", collapse=True)
CANDIDATES = ("bank", "bank account", "yes", "friend's house", "no money in the house")
TEXTS = (
    "the dog",
    "why is the sky blue? who keeps the money of a man in the bank of the river",
    "a woman sees the cat",
    "x",
    "explain what is more nonsensical: the dog sleeps, the cat runs",
    "yes or no",
    "where is the water",
)  # fmt: skip


@dataclass
class Tiny:
    """A loaded model with its encoder."""

    model: PreTrainedModel
    encoder: Encoder
    answer_only: Encoder = field(init=False)

    def __post_init__(self) -> None:
        self.answer_only = Encoder(
            self.encoder.tokenizer,
            self.encoder.prompt_format,
            decoder_start_id=self.encoder.decoder_start_id,
            answer_only=True,
        )

    def questions(
        self, texts: Sequence[str] = TEXTS, candidates: Sequence[str] = CANDIDATES
    ) -> list[EncodedQuestion]:
        return [self.encoder.question(str(n), text, candidates) for n, text in enumerate(texts)]

    @torch.no_grad()
    def encoded(self, texts: Sequence[str] = TEXTS) -> tuple[Tensor, Tensor]:
        """The encoder's output for a padded batch, and its mask."""
        batch = self.encoder.tokenizer(list(texts), padding=True, return_tensors="pt")
        hidden = self.model.get_encoder()(input_ids=batch.input_ids, attention_mask=batch.attention_mask)
        return hidden.last_hidden_state, batch.attention_mask

    @torch.no_grad()
    def log_probs(self, text: str, tokens: list[int]) -> list[float]:
        """Each token's log-probability after those before it, by one plain forward pass."""
        inputs = self.encoder.tokenizer([text], return_tensors="pt")
        given = torch.tensor([[self.model.config.decoder_start_token_id, *tokens[:-1]]])
        logits = self.model(
            input_ids=inputs.input_ids, attention_mask=inputs.attention_mask, decoder_input_ids=given
        ).logits[0]
        return logits.log_softmax(-1)[range(len(tokens)), tokens].tolist()


@pytest.fixture(scope="session")
def tiny(tiny_model: Path) -> Tiny:
    source = ModelSource(str(tiny_model))
    model = load_model(source).eval()
    encoder = Encoder(load_tokenizer(source), FORMAT, decoder_start_id=model.config.decoder_start_token_id)
    return Tiny(model, encoder)
