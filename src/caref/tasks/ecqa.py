"""ECQA: CommonsenseQA v1.11 questions with properties that justify the right choice.

Aggarwal et al., 2021. The explanation is FEB's: the positive properties in one line. The
authors' own split is used; its lists share 7 ids between train and validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from caref.tasks.commonsenseqa import DEV_FILES, PROMPTS, TRAIN_FILES, Question, question_of, read_questions
from caref.tasks.example import Example
from caref.tasks.parsing import collapse
from caref.tasks.pool import Located, Part, Report, Row, RowError
from caref.tasks.reading import read_jsonl, read_table, text
from caref.tasks.task import Format, Found, HubCopy, Task

_SHORT: Mapping[Part, str] = {"train": "train", "validation": "val", "test": "test"}
_OPTIONS = tuple(f"q_op{number}" for number in range(1, 6))
_QUESTIONS = {"cqa_train": TRAIN_FILES, "cqa_dev": DEV_FILES}


def join_positives(positives: Sequence[str]) -> str:
    """The positive properties as one explanation, as FEB writes it.

    Empty items are kept by the formula and leave a stray full stop.

    Example:
        >>> join_positives(["Libraries have maps", "They lend books."])
        'Libraries have maps. They lend books.'
    """
    if not any(item.strip() for item in positives):
        return ""
    return (". ".join(positives) + ".").replace("..", ".")


def _from_columns(values: Mapping[str, Any]) -> Example:
    """A row of the release's joined table; the copies on the hub have the same columns."""
    return Example(
        text(values, "q_no"),
        {"question": text(values, "q_text")},
        tuple(text(values, option) for option in _OPTIONS),
        text(values, "q_ans"),
        (join_positives(text(values, "taskA_pos").split("\n")),),
    )


def _read_joined(found: Found, part: Part, report: Report) -> Iterator[Located]:
    columns = ("q_no", "q_text", *_OPTIONS, "q_ans", "taskA_pos")
    for file in found["table"]:
        rows = read_table(file, report, columns=columns)
        yield from report.convert(rows, lambda row: _from_columns(row.values))


def _read_release(found: Found, part: Part, report: Report) -> Iterator[Located]:
    questions = _questions(found, report)
    annotations = (row.values for file in found["annotations"] for row in read_jsonl(file, report))
    explanations = {  # a later annotation of an id wins, as in FEB
        values.get("id"): join_positives([str(item) for item in values["positives"]])
        for values in annotations
        if isinstance(values.get("positives"), list)
    }

    def to_example(row: Row) -> Example:
        id_ = text(row.values, "id")
        if id_ not in explanations:
            raise RowError(f"no positives for id {id_!r} in {', '.join(map(str, found['annotations']))}")
        return _example(id_, question_of(questions, id_), explanations[id_])

    for file in found["ids"]:
        yield from report.convert(read_table(file, report, columns=("id",), header=False), to_example)


def _read_positives(found: Found, part: Part, report: Report) -> Iterator[Located]:
    questions = _questions(found, report)

    def to_example(row: Row) -> Example:
        id_ = text(row.values, "id")
        return _example(id_, question_of(questions, id_), text(row.values, "explanation"))

    for file in found["explanations"]:
        yield from report.convert(read_jsonl(file, report), to_example)


def _read_flan(found: Found, part: Part, report: Report) -> Iterator[Located]:
    """Rows without an id, joined to the question with the same stem and choices, blanks collapsed."""
    questions = _questions(found, report)
    ids = {_flan_question(question): id_ for id_, question in questions.items()}

    def to_example(row: Row) -> Example:
        id_ = ids.get(_collapse_lines(text(row.values, "question")))
        if id_ is None:
            raise RowError("no CommonsenseQA question with this stem and these choices")
        if collapse(questions[id_].answer) != collapse(text(row.values, "answer")):
            raise RowError(f"the answer is not that of question {id_!r}: {questions[id_].answer!r}")
        return _example(id_, questions[id_], text(row.values, "rationale"))

    columns = ("question", "answer", "rationale")
    for file in found["explanations"]:
        rows = read_table(file, report, columns=columns, header=False, delimiter="\t", quoting=False)
        yield from report.convert(rows, to_example)


def _flan_question(question: Question) -> str:
    return _collapse_lines(
        "\\n".join((question.stem, "Options:", *(f"- {each}" for each in question.choices)))
    )


def _collapse_lines(text: str) -> str:
    """Blanks collapsed in each line of a text whose line breaks are written as backslash and n."""
    return "\\n".join(collapse(line) for line in text.split("\\n"))


def _questions(found: Found, report: Report) -> dict[str, Question]:
    return read_questions([*found["cqa_train"], *found["cqa_dev"]], report, choices=5)


def _example(id_: str, question: Question, explanation: str) -> Example:
    return Example(id_, {"question": question.stem}, question.choices, question.answer, (explanation,))


ECQA = Task(
    name="ecqa",
    labels=(),
    prompts=PROMPTS,
    source="https://github.com/dair-iitd/ECQA-Dataset",
    licence="CDLA-Sharing-1.0",
    parts=("train", "validation", "test"),
    formats=(
        Format(
            "joined-csv",
            {part: {"table": (f"cqa_data_{short}.csv",)} for part, short in _SHORT.items()},
            _read_joined,
        ),
        Format(
            "release-jsonl",
            {
                part: {
                    "annotations": ("ecqa.jsonl",),
                    "ids": (f"author_split/{short}_ids.txt",),
                    **_QUESTIONS,
                }
                for part, short in _SHORT.items()
            },
            _read_release,
        ),
        Format(
            "positives-jsonl",
            {
                "train": {
                    "explanations": ("derived/ecqa_train_positives.jsonl", "ecqa_train_positives.jsonl"),
                    **_QUESTIONS,
                }
            },
            _read_positives,
        ),
        Format(
            "flan-tsv",
            {"train": {"explanations": ("flan_cot/ecqa_train.tsv", "ecqa_train.tsv"), **_QUESTIONS}},
            _read_flan,
        ),
    ),
    hub=HubCopy("yangdong/ecqa", _from_columns, {part: part for part in _SHORT}),
    folders=("ecqa", "ECQA-Dataset"),
)
