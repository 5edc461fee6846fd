"""Tiny random models of every family, each with a tokenizer of its kind, written to a folder.

`ENCODER_DECODERS`, `DECODERS` and `ALL` name the fixtures; a fixture's folder is called as it is, with
hyphens. Decoder-only models have two layers, and fewer key-value heads than heads where the family has
that; Qwen3's heads are wider than hidden size by heads.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

# With these words and all letters every tokenizer can write any English text.
WORDS = [
    "explain", "nli", "hypothesis", "premise", "what", "is", "more", "nonsensical", "choice1", "choice2",
    "choice", "because", "entailment", "neutral", "contradiction", "yes", "no", "the", "a", "an", "man",
    "woman", "dog", "cat", "sleeps", "runs", "eats", "sees", "red", "blue", "sky", "bank", "account",
    "river", "house", "friend", "money", "water", "it", "you", "can", "not", "and", "or", "of", "in", "to",
    "on", "are", "s", "t", "who", "where", "why", "keep",
]  # fmt: skip
T5_SPECIAL = ["<pad>", "</s>", "<unk>"]
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LONGEST = 512

# As LLaMA 3's: the text's own beginning is part of the template.
LLAMA_CHAT = (
    "{{ bos_token }}{% for m in messages %}<|start|>{{ m['role'] }}<|stop|>{{ m['content'] }}<|eot|>"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant<|stop|>{% endif %}"
)
# ChatML, as Qwen's: nothing before the first message.
QWEN_CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


# --- models -----------------------------------------------------------------------------------------


def write_t5(directory: Path, *, tied: bool) -> Path:
    """T5 1.1, with an output matrix of its own as the published Flan-T5 has it, or without."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    from caref.models.loading import untie_output_layer

    tokenizer = t5_tokenizer()
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
    return _save(directory, model, tokenizer)


def write_bert2bert(directory: Path) -> Path:
    """A BERT-to-BERT pair with a WordPiece tokenizer."""
    import torch
    from transformers import BertConfig, EncoderDecoderConfig, EncoderDecoderModel

    tokenizer = bert_tokenizer()
    # Two configurations: the decoder's is changed, and the encoder must get no cross-attention by that.
    encoder, decoder = (
        BertConfig(
            vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=64, max_position_embeddings=LONGEST,
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
    return _save(directory, model, tokenizer)


def write_bart(directory: Path) -> Path:
    """BART: `<s> ... </s>` in input and target, the decoder starts from `</s>`."""
    from transformers import BartConfig, BartForConditionalGeneration

    tokenizer = bart_tokenizer()
    config = BartConfig(
        vocab_size=len(tokenizer), d_model=32, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=64,
        decoder_ffn_dim=64, encoder_attention_heads=4, decoder_attention_heads=4,
        max_position_embeddings=LONGEST, bos_token_id=0, pad_token_id=1, eos_token_id=2,
        decoder_start_token_id=2, forced_eos_token_id=None,
    )  # fmt: skip
    return _write(directory, BartForConditionalGeneration, config, tokenizer)


def _decoder(
    family: str, tokenizer: Callable[[], PreTrainedTokenizerFast], **settings: Any
) -> Callable[[Path], Path]:
    """A writer of a decoder-only model; `settings` are its configuration's, next to the common ones."""

    def write(directory: Path) -> Path:
        from transformers import AutoConfig, AutoModelForCausalLM

        own = tokenizer()
        sizes = {
            "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
            "max_position_embeddings": LONGEST,
        }  # fmt: skip
        if family == "gpt2":
            sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": LONGEST}
        config = AutoConfig.for_model(
            family,
            **{**sizes, **settings},
            vocab_size=len(own),
            bos_token_id=own.bos_token_id,
            eos_token_id=own.eos_token_id,
            pad_token_id=own.pad_token_id,
        )
        return _write(directory, AutoModelForCausalLM.from_config, config, own)

    return write


def _write(
    directory: Path,
    build: Callable[[Any], PreTrainedModel],
    config: Any,
    tokenizer: PreTrainedTokenizerFast,
) -> Path:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build(config)
        _spread(model, embeddings=0.5, others=0.4, biases=0.1)
    return _save(directory, model, tokenizer)


def _save(directory: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Path:
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def _spread(model: torch.nn.Module, *, embeddings: float, others: float, biases: float = 0.0) -> None:
    """Make a random model's matrices larger: what it writes should depend on what it reads."""
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                is_embedding = any(part in name for part in ("embed", "wte", "wpe"))
                parameter.copy_(torch.randn_like(parameter) * (embeddings if is_embedding else others))
            elif biases and name.endswith(".bias"):
                parameter.copy_(torch.randn_like(parameter) * biases)


# --- tokenizers -------------------------------------------------------------------------------------


def t5_tokenizer() -> PreTrainedTokenizerFast:
    from transformers import PreTrainedTokenizerFast

    tokenizer = _unigram(T5_SPECIAL, unknown=2)
    tokenizer.post_processor = _template("$A </s>", {"</s>": 1})
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        model_max_length=LONGEST,
    )  # fmt: skip


def bert_tokenizer() -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    characters = string.ascii_lowercase + string.digits
    pieces = [*BERT_SPECIAL, *WORDS, *characters, *string.punctuation, *(f"##{c}" for c in characters)]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    tokenizer.post_processor = _template("[CLS] $A [SEP]", {"[CLS]": 2, "[SEP]": 3})
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", bos_token="[CLS]", eos_token="[SEP]",
        model_max_length=LONGEST,
    )  # fmt: skip


def bart_tokenizer() -> PreTrainedTokenizerFast:
    """Words with the blank before them, `<s> ... </s>` around every text."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = _byte_level(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.post_processor = _template("<s> $A </s>", {"<s>": 0, "</s>": 2})
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        mask_token="<mask>", cls_token="<s>", sep_token="</s>", model_max_length=LONGEST,
    )  # fmt: skip


def gpt2_tokenizer() -> PreTrainedTokenizerFast:
    """Words with the blank before them; one special token, which neither begins a text nor pads it."""
    from transformers import PreTrainedTokenizerFast

    end = "<|endoftext|>"
    return PreTrainedTokenizerFast(
        tokenizer_object=_byte_level([end]), bos_token=end, eos_token=end, unk_token=end,
        model_max_length=LONGEST,
    )  # fmt: skip


def llama_tokenizer() -> PreTrainedTokenizerFast:
    """As LLaMA 3's: a token begins every text, none pads it, and there is a chat template."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = _byte_level(["<|begin|>", "<|end|>", "<|start|>", "<|stop|>", "<|eot|>"])
    tokenizer.post_processor = _template("<|begin|> $A", {"<|begin|>": 0})
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|begin|>", eos_token="<|end|>",
        additional_special_tokens=["<|start|>", "<|stop|>", "<|eot|>"], model_max_length=LONGEST,
    )  # fmt: skip
    made.chat_template = LLAMA_CHAT
    return made


def qwen_tokenizer() -> PreTrainedTokenizerFast:
    """As Qwen's: no token begins a text, one of its own pads it, and there is a chat template."""
    from transformers import PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(
        tokenizer_object=_byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"]),
        pad_token="<|endoftext|>", eos_token="<|im_end|>", additional_special_tokens=["<|im_start|>"],
        model_max_length=LONGEST,
    )  # fmt: skip
    made.chat_template = QWEN_CHAT
    return made


def mistral_tokenizer() -> PreTrainedTokenizerFast:
    """As SentencePiece's: blanks are written in the pieces, `<s>` begins every text, none pads it."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = _unigram(["<unk>", "<s>", "</s>"], unknown=0)
    tokenizer.post_processor = _template("<s> $A", {"<s>": 1})
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
        model_max_length=LONGEST,
    )  # fmt: skip


def _unigram(special: list[str], *, unknown: int) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    characters = string.ascii_letters + string.digits + string.punctuation + "▁"
    pieces = [(token, 0.0) for token in special]
    pieces += [(f"▁{word}", -2.0) for word in WORDS]
    pieces += [(character, -10.0) for character in characters]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def _byte_level(special: list[str]) -> Any:
    """Bytes, and the words both with and without the blank before them, which are not the same token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    # It ends when nothing is left to merge: every word is one piece.
    trainer = trainers.BpeTrainer(
        vocab_size=10_000, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([*WORDS, *(f" {word}" for word in WORDS)], trainer)
    return tokenizer


def _template(single: str, special: dict[str, int]) -> Any:
    from tokenizers import processors

    return processors.TemplateProcessing(single=single, special_tokens=list(special.items()))


# --- what there is ----------------------------------------------------------------------------------

WRITERS: dict[str, Callable[[Path], Path]] = {
    "tiny_t5": lambda directory: write_t5(directory, tied=True),
    "tiny_t5_untied": lambda directory: write_t5(directory, tied=False),
    "tiny_bert2bert": write_bert2bert,
    "tiny_bart": write_bart,
    "tiny_gpt2": _decoder("gpt2", gpt2_tokenizer),
    "tiny_llama": _decoder("llama", llama_tokenizer, num_key_value_heads=2),
    "tiny_qwen2": _decoder("qwen2", qwen_tokenizer, num_key_value_heads=2, tie_word_embeddings=True),
    "tiny_qwen3": _decoder(
        "qwen3", qwen_tokenizer, num_key_value_heads=2, head_dim=16, tie_word_embeddings=True
    ),
    "tiny_mistral": _decoder("mistral", mistral_tokenizer, num_key_value_heads=1, sliding_window=None),
    "tiny_phi3": _decoder("phi3", llama_tokenizer, num_key_value_heads=2),
    "tiny_gpt_neox": _decoder("gpt_neox", gpt2_tokenizer),
}
"""Fixture to the function that writes its model to a folder."""

ENCODER_DECODERS = ("tiny_t5", "tiny_t5_untied", "tiny_bert2bert", "tiny_bart")
DECODERS = tuple(name for name in WRITERS if name not in ENCODER_DECODERS)
ALL = (*ENCODER_DECODERS, *DECODERS)
