from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from peft import PrefixTuningConfig, PromptEncoderConfig, PromptTuningConfig, get_peft_model
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from caref.generation.reading import Reading, read
from caref.models.encoding import EncodedQuestion, Encoder
from caref.models.loading import ModelSource, load_model, load_tokenizer, quiet_peft
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
            self.model.config,
            answer_only=True,
        )

    @property
    def opening(self) -> int:
        """How many tokens every target begins with: BART's `<s>`."""
        return len(self.encoder._label_ids("")) - 1

    def questions(
        self, texts: Sequence[str] = TEXTS, candidates: Sequence[str] = CANDIDATES
    ) -> list[EncodedQuestion]:
        return [self.encoder.question(str(n), text, candidates) for n, text in enumerate(texts)]

    @torch.no_grad()
    def read(self, texts: Sequence[str] = TEXTS) -> Reading:
        """What the model has read, the texts in one padded batch."""
        return read(self.model, [self.encoder.question("q", text).input_ids for text in texts])

    def log_probs(self, text: str, tokens: list[int]) -> list[float]:
        """Each token's log-probability after those before it."""
        return self.distributions(text, tokens)[range(len(tokens)), tokens].tolist()

    @torch.no_grad()
    def distributions(self, text: str, tokens: list[int]) -> Tensor:
        """All log-probabilities at each of `tokens`, by one plain forward pass as in training."""
        ids = self.encoder.question("q", text).input_ids
        if self.encoder.decoder_only:
            whole = torch.tensor([[*ids, *tokens]])
            logits = self.model(input_ids=whole, attention_mask=torch.ones_like(whole)).logits
            # Counted from the end: what an adapter puts before the input has logits too.
            logits = logits[0, -len(tokens) - 1 : -1]
        else:
            begun = torch.tensor([[self.model.config.decoder_start_token_id, *tokens[:-1]]])
            read = torch.tensor([ids])
            logits = self.model(
                input_ids=read, attention_mask=torch.ones_like(read), decoder_input_ids=begun
            ).logits[0]
        return logits.log_softmax(-1)

    @torch.no_grad()
    def generated(self, text: str, config: GenerationConfig, prefix: Sequence[int] = ()) -> list[int]:
        """What transformers' own `generate` writes after `prefix`, its end token left out."""
        read, given = torch.tensor([self.encoder.question("q", text).input_ids]), {}
        begun = [config.decoder_start_token_id, *prefix]
        if self.encoder.decoder_only:
            read = torch.tensor([[*read[0].tolist(), *prefix]])
            begun = read[0].tolist()
        else:
            given = {"decoder_input_ids": torch.tensor([begun])}
        written = self.model.generate(
            input_ids=read,
            attention_mask=torch.ones_like(read),
            generation_config=GenerationConfig(**config.to_diff_dict()),
            **given,
        )[0, len(begun) :].tolist()
        return written[:-1] if written[-1] in config.eos_token_id else written

    def adapt(self, kind: str) -> None:
        """Put an adapter with 3 virtual tokens around the model: "prefix", "prompt" or "p-tuning"."""
        config = self.model.config
        seq2seq = config.is_encoder_decoder
        inner = config.decoder if config.model_type == "encoder-decoder" else config
        heads = getattr(inner, "num_key_value_heads", None) or inner.num_attention_heads
        size = getattr(inner, "d_kv", None) or getattr(inner, "head_dim", None)
        size = size or inner.hidden_size // inner.num_attention_heads
        shape = {
            "num_layers": inner.num_hidden_layers,
            "num_attention_heads": heads,
            "token_dim": heads * size if kind == "prefix" else inner.hidden_size,
            "num_transformer_submodules": 2 if seq2seq and kind == "prefix" else 1,
            "task_type": "SEQ_2_SEQ_LM" if seq2seq else "CAUSAL_LM",
            "num_virtual_tokens": 3,
        }
        kinds = {"prefix": PrefixTuningConfig, "prompt": PromptTuningConfig, "p-tuning": PromptEncoderConfig}
        if kind == "p-tuning":
            shape["encoder_hidden_size"] = 16
        with quiet_peft(), torch.random.fork_rng():
            torch.manual_seed(5)
            self.model = get_peft_model(self.model, kinds[kind](**shape)).eval()
            for parameter in self.model.prompt_encoder.parameters():
                torch.nn.init.normal_(parameter)


def load(path: Path) -> Tiny:
    source = ModelSource(str(path))
    model = load_model(source).eval()
    return Tiny(model, Encoder(load_tokenizer(source), FORMAT, model.config))


@pytest.fixture(scope="session")
def tiny(tiny_any: Path) -> Tiny:
    """Each tiny model in turn, encoder-decoder or decoder-only."""
    return load(tiny_any)


@pytest.fixture(scope="session")
def load_tiny() -> Callable[[Path], Tiny]:
    """Loads a tiny model from its folder."""
    return load


@pytest.fixture
def fresh(tiny_any: Path) -> Tiny:
    """The same for a test of its own, which may change it."""
    return load(tiny_any)
