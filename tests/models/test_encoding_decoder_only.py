"""Where a decoder-only model's input ends and what it writes begins."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import processors

from caref.models.encoding import Encoder
from caref.models.loading import ModelSource, load_config, load_tokenizer
from caref.tasks.example import Example
from caref.tasks.prompt import PromptFormat

FORMAT = PromptFormat(name="test", input="why: {premise}", context="premise")
EXAMPLE = Example("e1", {"premise": "the dog sleeps"}, ("bank", "bank account"), "bank", ("it is a dog",))


def encoder(path: Path, prompt: PromptFormat = FORMAT) -> Encoder:
    source = ModelSource(str(path))
    return Encoder(load_tokenizer(source), prompt, load_config(source))


def test_the_input_ends_in_a_line_break_and_the_target_in_the_end_token(tiny_decoder: Path) -> None:
    made = encoder(tiny_decoder)
    encoded, tokenizer = made.encode(EXAMPLE), made.tokenizer
    assert encoded.question.input == "why: the dog sleeps"
    assert encoded.question.input_ids == tokenizer("why: the dog sleeps\n").input_ids
    assert encoded.labels == [
        *tokenizer("bank because it is a dog", add_special_tokens=False).input_ids,
        tokenizer.eos_token_id,
    ]
    # What begins every text does so once, and what ends it stands at the end alone.
    whole = [*encoded.question.input_ids, *encoded.labels]
    if "<s>" in tokenizer.all_special_tokens or "<|begin|>" in tokenizer.all_special_tokens:
        assert whole[0] == tokenizer.bos_token_id
        assert whole.count(tokenizer.bos_token_id) == 1
    assert whole.count(tokenizer.eos_token_id) == 1
    assert made.text(encoded.labels) == "bank because it is a dog"


def test_a_word_that_begins_the_target_is_written_as_one_that_begins_a_line(
    tiny_gpt2: Path, tiny_mistral: Path
) -> None:
    for path, expected in (
        (tiny_gpt2, ["bank", "Ġbecause", "Ġit"]),
        (tiny_mistral, ["▁bank", "▁because", "▁it"]),
    ):
        made = encoder(path)
        assert made.tokenizer.convert_ids_to_tokens(made.encode(EXAMPLE).labels)[:3] == expected
        assert made.tokenizer.convert_ids_to_tokens(made.separator_ids()) == [expected[1]]
        assert made.tokenizer.convert_ids_to_tokens(made.answer_ids("bank")) == expected[:2]
        assert made.round_trip("friend's house") == "friend's house"


def test_training_and_generation_share_the_boundary(tiny_decoder: Path) -> None:
    """The labels of every text are tokens that can follow the input as they are."""
    made = encoder(tiny_decoder)
    for answer in ("bank account", "friend's house"):
        ids = made.answer_ids(answer)
        assert ids[-len(made.separator_ids()) :] == made.separator_ids()
        assert made.encode(EXAMPLE).question.input_ids == made.question("q", "why: the dog sleeps").input_ids


def test_a_tokenizer_that_ends_every_text(tiny_mistral: Path) -> None:
    made = encoder(tiny_mistral)
    made.tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    encoded = made.encode(EXAMPLE)
    assert encoded.question.input_ids[0] == 1
    assert 2 not in encoded.question.input_ids, "the answer follows: the text has not ended"
    assert encoded.labels.count(2) == 1


@pytest.mark.parametrize("name", ["tiny_llama", "tiny_qwen2", "tiny_phi3"])
def test_a_chat_ends_where_its_template_asks_for_the_answer(
    request: pytest.FixtureRequest, name: str
) -> None:
    chat = PromptFormat(name="chat", input="{premise}", chat=True, system="be a friend")
    path = request.getfixturevalue(name)
    if load_tokenizer(ModelSource(str(path))).chat_template is None:
        pytest.skip("no chat template")
    made = encoder(path, chat)
    encoded, tokenizer = made.encode(EXAMPLE), made.tokenizer
    messages = [
        {"role": "system", "content": "be a friend"},
        {"role": "user", "content": "the dog sleeps"},
    ]
    assert encoded.question.input_ids == tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_dict=False
    )
    assert encoded.labels == encoder(path).encode(EXAMPLE).labels
    if tokenizer.bos_token_id is not None:
        assert encoded.question.input_ids.count(tokenizer.bos_token_id) == 1
