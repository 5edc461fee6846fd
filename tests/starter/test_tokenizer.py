from __future__ import annotations

import functools
import random
import unicodedata
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from caref.starter.lessons import Teacher
from caref.starter.tokenizer import MOST_WORDS, make_tokenizer
from caref.tasks.starter.world import load_world


def texts() -> list[str]:
    teacher = Teacher(load_world(), random.Random(0))
    return [text for _ in range(2000) for text in teacher.lesson()] + teacher.words


@functools.cache
def tokenizer() -> PreTrainedTokenizerFast:
    return make_tokenizer(texts())


def test_the_same_texts_give_the_same_tokenizer() -> None:
    again = make_tokenizer(texts())
    assert again.get_vocab() == tokenizer().get_vocab()
    assert again.backend_tokenizer.to_str() == tokenizer().backend_tokenizer.to_str()


def test_a_word_of_the_world_is_one_token() -> None:
    teacher = Teacher(load_world(), random.Random(0))
    lengths = {word: len(tokenizer()(word).input_ids) for word in teacher.words}
    assert set(lengths.values()) == {2}, [word for word, n in lengths.items() if n != 2]  # and its end


def test_its_size_is_bounded() -> None:
    assert len(make_tokenizer(f"word{number}" for number in range(9000))) < MOST_WORDS + 256 + 100


@settings(deadline=None)  # the first call makes the tokenizer
# Newer characters are normalised by newer tables of Unicode than some tokenizer's or Python's. The low line
# U+2581 is how the tokenizer itself writes a blank.
@given(
    st.text(
        st.characters(max_codepoint=0x9FFF, exclude_categories=("C", "Z"), exclude_characters="\u2581"),
        min_size=1,
        max_size=30,
    )
)
def test_no_text_is_lost_but_its_capitals(text: str) -> None:
    ids = tokenizer()(text).input_ids
    assert tokenizer().unk_token_id not in ids
    told = tokenizer().decode(ids, skip_special_tokens=True)
    # Some characters are normalised to ones with a blank before them.
    assert told.split() == unicodedata.normalize("NFKC", text).lower().split()


def test_it_survives_saving(tmp_path: Path) -> None:
    tokenizer().save_pretrained(tmp_path)
    text = "Choice2 because a Lion is BIGGER than 3 mice (really)!"
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded(text).input_ids == tokenizer()(text).input_ids
    assert loaded.decode(loaded(text).input_ids, skip_special_tokens=True) == text.lower()
