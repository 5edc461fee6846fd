from __future__ import annotations

from typing import Any

import pytest

from caref.errors import CarefError
from caref.tasks import get_task
from caref.tasks.example import Example
from caref.tasks.prompt import PromptFormat

NLI = Example(
    "1",
    {"premise": "A Dog  digs on\tthe beach.", "hypothesis": "An Animal digs."},
    ("entailment", "neutral", "contradiction"),
    "entailment",
    ("A Dog is an\n animal.", "second"),
)
QUESTION = Example(
    "q",
    {"question": "Where is  Paris? "},
    ("France", "Texas", "france", "New  York"),
    "New  York",
    ("It IS there.",),
)
SENTENCES = Example(
    "0-0",
    {"sent0": "He ate Sand.", "sent1": "He ate  Bread."},
    ("choice1", "choice2"),
    "choice1",
    ("Sand is no food.",),
)


@pytest.mark.parametrize(
    ("task", "example", "input_", "target"),
    [
        (
            "esnli",
            NLI,
            "explain nli hypothesis: An Animal digs. premise: A Dog digs on the beach.",
            "entailment because a dog is an animal.",
        ),
        (
            "ecqa",
            QUESTION,
            r"explain where is paris? \n (A) france (B) texas (C) france (D) new york",
            "new york because it is there.",
        ),
        (
            "cos_e",
            QUESTION,
            r"explain where is paris? \n (A) france (B) texas (C) france (D) new york",
            "new york because it is there.",
        ),
        (
            "comve",
            SENTENCES,
            r"explain what is more nonsensical? \n choice1: he ate sand. choice2: he ate bread.",
            "choice1 because sand is no food.",
        ),
    ],
)
def test_feb_prompts(task: str, example: Example, input_: str, target: str) -> None:
    prompt = get_task(task).prompts["feb"].render(example)
    assert (prompt.input, prompt.target) == (input_, target)


def test_candidates_are_written_as_in_the_target_each_once() -> None:
    prompt = get_task("ecqa").prompts["feb"].render(QUESTION)
    assert prompt.candidates == ("france", "texas", "new york")
    assert prompt.answer == "new york"
    assert prompt.explanation == "it is there."
    kept = get_task("ecqa").prompts["instruction"].render(QUESTION)
    assert kept.candidates == ("France", "Texas", "france", "New York")


def test_context_is_cut_by_words_and_nothing_else() -> None:
    feb = get_task("esnli").prompts["feb"]
    assert feb.render(NLI, context_words=2).input == "explain nli hypothesis: An Animal digs. premise: A Dog"
    assert feb.render(NLI, context_words=0).input == "explain nli hypothesis: An Animal digs. premise:"
    assert feb.render(NLI, context_words=99) == feb.render(NLI)
    with pytest.raises(CarefError, match="has no context"):
        get_task("ecqa").prompts["feb"].render(QUESTION, context_words=2)


def test_explanation_is_cut_by_words_and_the_separator_stays() -> None:
    feb = get_task("esnli").prompts["feb"]
    assert feb.render(NLI, explanation_words=2).target == "entailment because a dog"
    assert feb.render(NLI, explanation_words=0).target == "entailment because"


def test_choices_as_lines_and_commas() -> None:
    format_ = PromptFormat(name="x", input="{question}\n{choices:lines}\n{choices!l:comma}")
    assert format_.render(QUESTION).input == (
        "Where is Paris?\n- France\n- Texas\n- france\n- New York\nfrance, texas, france, new york"
    )


def test_more_choices_than_letters() -> None:
    many = Example("1", {"question": "?"}, tuple(map(str, range(27))), "0", ("why",))
    with pytest.raises(CarefError, match="27 choices are more than there are letters; use lines"):
        PromptFormat(name="x", input="{question} {choices:letters}").render(many)


def test_braces_in_values_are_text() -> None:
    example = Example("1", {"question": "{answer} {0} {question.__class__}?"}, (), "{x}", ("{y}",))
    prompt = PromptFormat(name="x", input="{{{question}}}").render(example)
    assert prompt.input == "{{answer} {0} {question.__class__}?}"
    assert prompt.target == "{x} because {y}"
    assert prompt.candidates == ()


def test_other_separator_and_words_around_the_answer() -> None:
    format_ = PromptFormat(
        name="x",
        input="{question}",
        target="The answer is {answer}. Reason: {explanation}",
        separator=" Reason: ",
    )
    prompt = format_.render(QUESTION)
    assert prompt.target == "The answer is New York. Reason: It IS there."
    assert prompt.answer == "The answer is New York."
    assert prompt.answer in prompt.candidates


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input": "{premis}"}, "prompt 'x': unknown field 'premis'; there are: question, choices"),
        ({"input": "{question.upper}"}, "unknown field 'question.upper'"),
        ({"input": "{question!u}"}, "unknown conversion '!u'"),
        ({"input": "{question} {choices}"}, "written as letters, lines or comma, not ''"),
        ({"input": "{question} {choices:words}"}, "written as letters, lines or comma, not 'words'"),
        ({"input": "{question"}, "not a template: '{question'"),
        ({"input": "no field"}, "the input names no field"),
        ({"input": "{question} {answer}"}, "must not name the answer or the explanation"),
        ({"target": "{answer}: {explanation}"}, "the target must hold the separator ' because '"),
        ({"target": "{answer} because"}, "the target must hold the separator"),
        ({"target": "{explanation} because {answer}"}, "must name {answer} before the separator"),
        ({"separator": " "}, "must hold the separator"),
        (
            {"context": "premise"},
            "the context 'premise' is no field that the input names; it names: question",
        ),
        ({"input": "{question} {choices:lines}", "context": "choices"}, "the context 'choices' is no field"),
        ({"system": "You are kind."}, "a system message needs chat"),
    ],
)
def test_bad_formats(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CarefError) as raised:
        PromptFormat(**{"name": "x", "input": "{question}", **changes}).render(QUESTION)
    assert message in str(raised.value)
