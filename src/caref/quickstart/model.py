"""A T5 made on the spot, so small that it trains in seconds. It shows the way, not a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

SEED = 0
VOCABULARY = 600
STEPS = 120
BATCH = 12
LEARNING_RATE = 3e-3
PAD, EOS, UNK = "<pad>", "</s>", "<unk>"


def write_tiny_t5(pairs: Sequence[tuple[str, str]], directory: Path) -> None:
    """Write a tiny T5 and its tokenizer; the same pairs give the same files.

    Random weights would write nothing that can be parsed. So all of them are trained for some steps on
    `pairs`, just long enough to answer in the right form; no more should be expected of it.

    Args:
        pairs: Inputs and targets. The tokenizer's vocabulary is learnt from them too; bytes are its
            alphabet, so that it can write any other text.
        directory: Where the model goes, in the format of transformers, weights as safetensors.
    """
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    from caref.models.loading import quiet_transformers

    tokenizer = _tokenizer(text for pair in pairs for text in pair)
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=64,
        d_kv=16,
        d_ff=128,
        num_layers=2,
        num_decoder_layers=2,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        dropout_rate=0.0,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]), quiet_transformers():
        torch.manual_seed(SEED)
        model = T5ForConditionalGeneration(config)
        _learn_the_form(model, tokenizer, pairs)
        model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def _learn_the_form(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, pairs: Sequence[tuple[str, str]]
) -> None:
    import torch

    inputs = tokenizer([asked for asked, _ in pairs], padding=True, return_tensors="pt")
    targets = tokenizer([told for _, told in pairs], padding=True, return_tensors="pt")
    labels = targets.input_ids.masked_fill(targets.attention_mask == 0, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    for _ in range(STEPS):
        rows = torch.randperm(len(pairs))[:BATCH]
        loss = model(
            input_ids=inputs.input_ids[rows], attention_mask=inputs.attention_mask[rows], labels=labels[rows]
        ).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, EOS, UNK],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {EOS}", special_tokens=[(EOS, tokenizer.token_to_id(EOS))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=EOS, unk_token=UNK, model_max_length=256
    )
