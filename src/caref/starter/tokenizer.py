"""The starter model's tokenizer: one token for every word of the world, letters and bytes for the rest."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, EOS, UNK = "<pad>", "</s>", "<unk>"
MOST_WORDS = 1600
BLANK = "\N{LOWER ONE EIGHTH BLOCK}"
"""How a token writes the blank before a word, as SentencePiece does."""

_PRINTABLE = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
_PUNCTUATION = ".,?:;"


def make_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A unigram tokenizer, in lower case, whose pieces are the words of some texts.

    Other words are written in letters, other characters in bytes, so that no text is lost but its capitals.

    Args:
        texts: Their most frequent words, up to `MOST_WORDS`, become pieces; the same texts give the same
            tokenizer.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    counts = Counter(word.rstrip(_PUNCTUATION) for text in texts for word in text.lower().split())
    del counts[""]
    words = sorted(counts, key=lambda word: (-counts[word], word))[:MOST_WORDS]
    total = sum(counts.values())
    word_scores = [(BLANK + word, math.log(counts[word] / total)) for word in words]
    # Rarer than any word: a word is never better written in letters, nor a letter in bytes.
    rare = -2 * math.log(total)
    known = {piece for piece, _ in word_scores}
    letters = [(piece, rare) for piece in (BLANK, *_PRINTABLE) if piece not in known]
    bytes_ = [(f"<0x{code:02X}>", 2 * rare) for code in range(256)]
    special = [(token, 0.0) for token in (PAD, EOS, UNK)]

    tokenizer = Tokenizer(
        models.Unigram([*special, *word_scores, *letters, *bytes_], unk_id=2, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    tokenizer.add_special_tokens([PAD, EOS, UNK])
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {EOS}", special_tokens=[(EOS, 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=EOS, unk_token=UNK, model_max_length=512
    )
