"""Fixtures for every test: where the shared real data is, and tiny models made on the spot."""

from __future__ import annotations

import os
import string
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from caref.tasks import TASKS, Task
from caref.tasks.example import Example
from caref.tasks.pool import Part
from caref.tasks.prompt import PromptFormat

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast

REPOSITORY = Path(__file__).resolve().parents[1]

# With these words and all letters both tokenizers can write any English text.
WORDS = [
    "explain", "nli", "hypothesis", "premise", "what", "is", "more", "nonsensical", "choice1", "choice2",
    "choice", "because", "entailment", "neutral", "contradiction", "yes", "no", "the", "a", "an", "man",
    "woman", "dog", "cat", "sleeps", "runs", "eats", "sees", "red", "blue", "sky", "bank", "account",
    "river", "house", "friend", "money", "water", "it", "you", "can", "not", "and", "or", "of", "in", "to",
    "on", "are", "s", "t", "who", "where", "why", "keep",
]  # fmt: skip
T5_SPECIAL = ["<pad>", "</s>", "<unk>"]
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the real data sets and the two small models; skips where it is absent."""
    folder = Path(os.environ.get("CAREF_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data: {folder} is absent (set CAREF_SHARED)")
    return folder


@pytest.fixture(scope="session")
def tiny_t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a random T5 1.1, its output layer tied, with a tokenizer of words and letters."""
    return write_t5(tmp_path_factory.mktemp("models") / "tiny-t5", tied=True)


@pytest.fixture(scope="session")
def tiny_t5_untied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with an output matrix of its own, as the published Flan-T5 has it."""
    return write_t5(tmp_path_factory.mktemp("models") / "tiny-t5-untied", tied=False)


@pytest.fixture(scope="session")
def tiny_bert2bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a random BERT-to-BERT pair with a WordPiece tokenizer of the same words."""
    return write_bert2bert(tmp_path_factory.mktemp("models") / "tiny-bert2bert")


@pytest.fixture(scope="session", params=["tiny_t5", "tiny_t5_untied", "tiny_bert2bert"])
def tiny_model(request: pytest.FixtureRequest) -> Path:
    """Each tiny model in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def parity(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Registers `make_parity` as a task; collects the parts that are generated, with their size."""
    generated: list[tuple[str, int]] = []

    def make_parity(
        *, size: int = 40, asked: Literal["even", "odd"] = "even", noise: float | None = None
    ) -> Task:
        """Is a number even, or odd?

        Args:
            size: How many numbers are in each part.
            asked: What is asked of each.
            noise: Not used. None means none.
        """
        if size < 2:
            raise ValueError(f"size must be at least 2, got {size}")

        def generate(part: Part) -> Iterator[Example]:
            generated.append((part, size))
            first = 0 if part == "train" else size
            for number in range(first, first + size):
                answer = "yes" if (number % 2 == 0) == (asked == "even") else "no"
                fields = {"number": str(number), "asked": asked}
                yield Example(str(number), fields, ("no", "yes"), answer, (f"it is {number}",))

        return Task(
            name="parity",
            labels=("no", "yes"),
            prompts={"feb": PromptFormat(name="feb", input="is {number} {asked}?")},
            source="https://example.org",
            licence="CC0",
            parts=("train", "validation"),
            generate=generate,
        )

    assert "parity" not in TASKS
    monkeypatch.setitem(TASKS._objects, "parity", make_parity)
    return generated


def write_t5(directory: Path, *, tied: bool) -> Path:
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    from caref.models.loading import untie_output_layer

    tokenizer = _t5_tokenizer()
    config = T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_decoder_layers=2,
        num_heads=4, feed_forward_proj="gated-gelu", dropout_rate=0.1, tie_word_embeddings=tied,
        pad_token_id=0, eos_token_id=1, decoder_start_token_id=0,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = T5ForConditionalGeneration(config)
        if not tied:
            untie_output_layer(model)
        _spread(model, embeddings=0.4, others=0.4)
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def write_bert2bert(directory: Path) -> Path:
    import torch
    from transformers import BertConfig, EncoderDecoderConfig, EncoderDecoderModel

    tokenizer = _bert_tokenizer()
    # Two configurations: the decoder's is changed, and the encoder must get no cross-attention by that.
    encoder, decoder = (
        BertConfig(
            vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=64, max_position_embeddings=512,
        )
        for _ in range(2)
    )  # fmt: skip
    config = EncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.pad_token_id, config.decoder_start_token_id, config.eos_token_id = 0, 2, 3
    config.vocab_size = len(tokenizer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = EncoderDecoderModel(config)
        _spread(model, embeddings=0.5, others=2.0)
    model.generation_config.decoder_start_token_id = 2
    model.generation_config.eos_token_id = 3
    model.generation_config.pad_token_id = 0
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def _spread(model: torch.nn.Module, *, embeddings: float, others: float) -> None:
    """Make a random model's matrices larger: what it writes should depend on what it reads."""
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                std = embeddings if "embeddings" in name else others
                parameter.copy_(torch.randn_like(parameter) * std)


def _t5_tokenizer() -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    characters = string.ascii_letters + string.digits + string.punctuation + "▁"
    pieces = [(token, 0.0) for token in T5_SPECIAL]
    pieces += [(f"▁{word}", -2.0) for word in WORDS]
    pieces += [(character, -10.0) for character in characters]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=512,
    )


def _bert_tokenizer() -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    characters = string.ascii_lowercase + string.digits
    pieces = [*BERT_SPECIAL, *WORDS, *characters, *string.punctuation, *(f"##{c}" for c in characters)]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", bos_token="[CLS]", eos_token="[SEP]", model_max_length=512,
    )  # fmt: skip
