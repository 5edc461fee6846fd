from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import T5Config

from caref.errors import CarefError
from caref.models.encoding import Encoder
from caref.models.loading import ModelSource, load_config, load_tokenizer
from caref.tasks import TASKS, get_task
from caref.tasks.example import Example
from caref.tasks.parsing import parse_answer
from caref.tasks.prompt import PromptFormat

FORMAT = PromptFormat(
    name="test",
    input="explain {question!l} premise: {premise!l} keep the account",
    target="{answer!l} because {explanation!l}",
    context="premise",
    collapse=True,
)
CHAT = PromptFormat(
    name="talk", input="{premise}", context="premise", chat=True, system="you are a friend", collapse=True
)
TEMPLATE = (
    "{% for m in messages %}({{ m['role'] }}) {{ m['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}(answer){% endif %}"
)


def example(premise: str = "the dog sleeps", explanation: str = "it is a dog") -> Example:
    return Example(
        "e1",
        {"question": "Why is the sky blue?", "premise": premise},
        ("bank", "bank account"),
        "bank",
        (explanation,),
    )


def encoder(path: Path, prompt: PromptFormat = FORMAT, **options: object) -> Encoder:
    source = ModelSource(str(path))
    return Encoder(load_tokenizer(source), prompt, load_config(source), **options)  # type: ignore[arg-type]


def words(count: int) -> str:
    return " ".join(("dog", "cat", "xq", "river")[index % 4] for index in range(count))


def test_input_and_target_are_the_tokenizers_own(tiny_model: Path) -> None:
    made = encoder(tiny_model)
    encoded = made.encode(example())
    tokenizer = made.tokenizer
    text = "explain why is the sky blue? premise: the dog sleeps keep the account"
    assert encoded.question.input == text
    assert encoded.question.input_ids == tokenizer(text).input_ids
    target = tokenizer("bank because it is a dog").input_ids
    # BERT's text begins with the token that its decoder starts from: the labels must not repeat it.
    assert encoded.labels == (target[1:] if target[0] == made.decoder_start_id else target)
    assert encoded.labels[0] != made.decoder_start_id
    assert encoded.labels[-1] == tokenizer.eos_token_id
    assert encoded.labels.count(tokenizer.eos_token_id) == 1
    assert (encoded.answer, encoded.explanations) == ("bank", ("it is a dog",))
    assert not encoded.input_cut
    assert not encoded.target_cut


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(0, 60), room=st.integers(0, 40))
def test_the_longest_context_that_fits_is_kept(tiny_any: Path, count: int, room: int) -> None:
    loose = encoder(tiny_any, max_input_tokens=10_000)

    def tokens(kept: int) -> int:
        return len(loose.ask(example(premise=words(kept)))[0].input_ids)

    limit = tokens(0) + room
    question, cut = encoder(tiny_any, max_input_tokens=limit).ask(example(premise=words(count)))
    assert len(question.input_ids) <= limit
    kept = len(question.input.split(" premise: ")[1].removesuffix("keep the account").split())
    assert question.input == loose.ask(example(premise=words(kept)))[0].input
    assert cut == (kept < count)
    if cut:
        assert tokens(kept + 1) > limit
    assert question.input.startswith("explain why is the sky blue? premise:")
    assert question.input.endswith("keep the account")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(1, 60), room=st.integers(0, 40))
def test_the_longest_explanation_that_fits_is_kept(tiny_any: Path, count: int, room: int) -> None:
    loose = encoder(tiny_any, max_target_tokens=10_000)

    def labels(kept: int) -> list[int]:
        return loose._label_ids(f"bank because {words(kept)}".strip())

    limit = len(labels(0)) + room
    made = encoder(tiny_any, max_target_tokens=limit).encode(example(explanation=words(count)))
    assert len(made.labels) <= limit
    kept = next(n for n in range(count + 1) if labels(n) == made.labels)
    assert made.target_cut == (kept < count)
    if made.target_cut:
        assert len(labels(kept + 1)) > limit
    assert made.explanations == (words(count),), "a reference is never cut"
    assert not made.input_cut


def test_too_long_with_nothing_left_to_cut(tiny_any: Path) -> None:
    with pytest.raises(
        CarefError, match=r"the input of example 'e1' has \d+ tokens and no context left to cut"
    ):
        encoder(tiny_any, max_input_tokens=8).ask(example(premise=words(50)))
    with pytest.raises(
        CarefError, match=r"the target of example 'e1' has \d+ tokens without its explanation"
    ):
        encoder(tiny_any, max_target_tokens=2).encode(example())


def test_without_a_context_field_nothing_is_cut(tiny_model: Path) -> None:
    fixed = PromptFormat(name="fixed", input="{premise}", collapse=True)
    with pytest.raises(CarefError, match=r"e1.*no context left to cut.*--max-input-tokens"):
        encoder(tiny_model, fixed, max_input_tokens=8).ask(example(premise=words(50)))


def test_a_ready_made_input_is_never_cut(tiny_model: Path) -> None:
    made = encoder(tiny_model, max_input_tokens=8)
    with pytest.raises(CarefError, match=r"the input 'q7' has \d+ tokens, more than the 8 of this run"):
        made.question("q7", words(30))
    question = made.question("q8", "the dog", ["yes", "no"])
    assert (question.id, question.input, question.candidates) == ("q8", "the dog", ("yes", "no"))


def test_no_candidates_tokens_begin_anothers(tiny_any: Path) -> None:
    made = encoder(tiny_any)
    candidates = ["bank", "bank account", "account", "friend's house", "friend"]
    ids = [made.answer_ids(candidate) for candidate in candidates]
    separator = made.separator_ids()
    for index, one in enumerate(ids):
        assert one[-len(separator) :] == separator
        assert made.tokenizer.eos_token_id not in one
        assert not any(other[: len(one)] == one for other in ids[:index] + ids[index + 1 :])


def test_an_answer_is_scored_by_the_tokens_that_a_target_begins_with(tiny_any: Path) -> None:
    made = encoder(tiny_any)
    for answer in ("bank account", "friend's house"):
        labels = made._label_ids(f"{answer} because it is a dog")
        ids = made.answer_ids(answer)
        assert labels[: len(ids)] == ids


def test_answer_only(tiny_any: Path) -> None:
    made = encoder(tiny_any, answer_only=True, max_target_tokens=3)
    encoded = made.encode(example(explanation=words(50)))
    assert made.text(encoded.labels) == "bank"
    assert encoded.labels[-1] == made.tokenizer.eos_token_id
    assert not encoded.target_cut, "there is no explanation to cut"
    assert encoded.explanations == (words(50),)
    # The end token plays the separator's part.
    bank, account = made.answer_ids("bank"), made.answer_ids("bank account")
    assert bank == encoded.labels
    assert account[: len(bank)] != bank


def test_the_separator_is_found_with_a_tokenizer_that_marks_words_by_their_blank(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    # As GPT-2's and BART's: "because" at the start of a text is another token than " because".
    pieces = ["<pad>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    pieces += ["be", "ca", "us", "beca", "use", "because", "Ġbecause"]
    merges = [
        ("b", "e"),
        ("c", "a"),
        ("u", "s"),
        ("be", "ca"),
        ("us", "e"),
        ("beca", "use"),
        ("Ġ", "because"),
    ]
    own = Tokenizer(models.BPE({piece: index for index, piece in enumerate(pieces)}, merges))
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=own, pad_token="<pad>", eos_token="</s>")
    made = Encoder(tokenizer, FORMAT, T5Config())
    separator = made.separator_ids()
    labels = made.encode(example()).labels
    assert tokenizer.convert_ids_to_tokens(separator) == ["Ġbecause"]
    assert separator[0] in labels
    assert made.answer_ids("bank")[-1:] == separator


def test_a_chat_needs_a_chat_template(tiny_model: Path) -> None:
    with pytest.raises(CarefError, match=r"'talk' is a chat.*no chat template; use --prompt instruction"):
        encoder(tiny_model, CHAT)


def test_a_chat_with_its_system_message(tiny_t5: Path) -> None:
    tokenizer = load_tokenizer(ModelSource(str(tiny_t5)))
    tokenizer.chat_template = TEMPLATE
    question, _ = Encoder(tokenizer, CHAT, T5Config()).ask(example())
    assert question.input == "the dog sleeps"
    text = tokenizer.decode(question.input_ids)
    assert text.startswith("(system) you are a friend (user) the dog sleeps (answer)")
    cut, was_cut = Encoder(tokenizer, CHAT, T5Config(), max_input_tokens=len(question.input_ids) - 1).ask(
        example()
    )
    assert (cut.input, was_cut) == ("the dog", True)
    assert tokenizer.decode(cut.input_ids).startswith("(system) you are a friend (user) the dog (answer)")


def test_text_and_round_trip(tiny_t5: Path, tiny_bert2bert: Path) -> None:
    assert encoder(tiny_t5).round_trip("friend's house") == "friend's house"
    assert encoder(tiny_bert2bert).round_trip("friend's house") == "friend ' s house"


@pytest.mark.parametrize("name", ["nle-mini", "nle-minilm"])
@pytest.mark.parametrize("task", TASKS.names())
def test_real_tokenizers_and_every_tasks_prompts(shared: Path, name: str, task: str) -> None:
    """A target's tokens begin with its answer's, and its text is read back."""
    labels = get_task(task).labels
    choices = labels or ("friend's house", "bank", "bank account", "a b-c, d.")
    for prompt in get_task(task).prompts.values():
        if prompt.chat:
            continue
        made = encoder(shared / "models" / name, prompt)
        told = Example("1", {}, choices, choices[0], ("it's a dog, isn't it?",))
        for choice in choices:
            ids = made.answer_ids(choice)
            _before, _, _after = prompt.target.partition(prompt.separator)
            written = made._label_ids(f"{choice}{prompt.separator}it's a dog")
            assert written[: len(ids)] == ids, (prompt.name, choice)
            parsed = parse_answer(made.text(written), prompt.separator)
            assert not parsed.broken, (prompt.name, made.text(written))
            assert parsed.answer == made.round_trip(choice)
        assert told.answer == choices[0]
