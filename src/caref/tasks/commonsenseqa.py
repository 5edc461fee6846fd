"""CommonsenseQA question files, which CoS-E and ECQA are joined to, and the prompts of both.

Source: https://www.tau-nlp.org/commonsenseqa (v1.11: five choices, v1.0: three); MIT licence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from caref.tasks.pool import Report, RowError
from caref.tasks.prompt import FEB_TARGET, PromptFormat
from caref.tasks.reading import read_jsonl, text

FOLDERS = ("", "cqa/", "commonsenseqa/v1.11/", "../commonsenseqa/v1.11/", "../../commonsenseqa/v1.11/")
"""Where v1.11 is looked for, relative to the folder of the data set that needs it."""

TRAIN_FILES = tuple(f"{folder}train_rand_split.jsonl" for folder in FOLDERS)
DEV_FILES = tuple(f"{folder}dev_rand_split.jsonl" for folder in FOLDERS)

PROMPTS = {
    "feb": PromptFormat(
        name="feb",
        input="explain {question!l} \\n {choices!l:letters}",  # backslash and n, as UnifiedQA writes it
        target=FEB_TARGET,
        collapse=True,
    ),
    "instruction": PromptFormat(
        name="instruction",
        input=(
            "Answer the question with one of the options, then write because and explain why it is right.\n\n"
            "Question: {question}\nOptions:\n{choices:lines}\n\nAnswer:"
        ),
    ),
    "chat": PromptFormat(
        name="chat",
        input=(
            "{question}\n{choices:lines}\n\n"
            "Reply in one line of this form: <option> because <explanation>. "
            "Copy the option's words exactly."
        ),
        chat=True,
        system="You answer commonsense questions and explain each answer in one short sentence.",
    ),
}


class Question(NamedTuple):
    """One question: its stem, its choices in the order of the file, and the right one."""

    stem: str
    choices: tuple[str, ...]
    answer: str


def read_questions(files: Iterable[Path], report: Report, *, choices: int) -> dict[str, Question]:
    """Questions by id.

    Args:
        files: Question files with answers.
        report: Takes the rows that cannot be used.
        choices: How many each question must have: versions share ids, not choices.
    """
    questions: dict[str, Question] = {}
    for file in files:
        for row in read_jsonl(file, report):
            try:
                id_, question = _question(row.values)
                if len(question.choices) != choices:
                    raise RowError(
                        f"expected {choices} choices, got {len(question.choices)}: another version?"
                    )
                if id_ in questions:
                    raise RowError(f"duplicate id {id_!r}")
            except RowError as error:
                report.add(row.file, row.line, str(error))
            else:
                questions[id_] = question
    return questions


def question_of(questions: Mapping[str, Question], id_: str) -> Question:
    """The question with that id.

    Raises:
        RowError: If there is none.
    """
    if id_ not in questions:
        raise RowError(f"no question with id {id_!r} in the CommonsenseQA files")
    return questions[id_]


def _question(values: Mapping[str, Any]) -> tuple[str, Question]:
    stem, key = text(values, "question", "stem"), text(values, "answerKey")
    choices = values["question"].get("choices")
    if not isinstance(choices, list):
        raise RowError("no question.choices")
    texts = {text(choice, "label"): text(choice, "text") for choice in choices}
    if key not in texts:
        raise RowError(f"answerKey {key!r} is not among the choices: {', '.join(texts)}")
    return text(values, "id"), Question(stem, tuple(texts.values()), texts[key])
