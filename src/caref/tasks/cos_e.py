"""CoS-E: a commonsense question, its right choice, and a free-text explanation of it.

Rajani et al., 2019, arXiv:1906.02361. FEB uses v1.0, with three choices; v1.11 has five. The
explanation is the open-ended one. Many are boilerplate; FEB filters nothing, nor does this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from caref.tasks.commonsenseqa import DEV_FILES, PROMPTS, TRAIN_FILES, question_of, read_questions
from caref.tasks.example import Example
from caref.tasks.pool import Located, Part, Report, Row, RowError
from caref.tasks.reading import read_jsonl, text
from caref.tasks.task import Format, Found, HubCopy, Task


def _task(name: str, version: str, *, choices: int) -> Task:
    folders = (f"{version}/", f"data/{version}/", "")
    shared = {"train": TRAIN_FILES, "dev": DEV_FILES} if version == "v1.11" else {"train": (), "dev": ()}

    def files(part: str, suffix: str) -> Mapping[str, tuple[str, ...]]:
        return {
            "explanations": tuple(f"{folder}cose_{part}_{version}{suffix}.jsonl" for folder in folders),
            "questions": (*(f"{folder}{part}_rand_split.jsonl" for folder in folders), *shared[part]),
        }

    def read(found: Found, part: Part, report: Report) -> Iterator[Located]:
        questions = read_questions(found["questions"], report, choices=choices)

        def to_example(row: Row) -> Example:
            id_ = text(row.values, "id")
            question = question_of(questions, id_)
            explanation = text(row.values, "explanation", "open-ended")
            return Example(
                id_, {"question": question.stem}, question.choices, question.answer, (explanation,)
            )

        for file in found["explanations"]:
            yield from report.convert(read_jsonl(file, report), to_example)

    formats = [
        Format(each, {"train": files("train", suffix), "validation": files("dev", suffix)}, read)
        for each, suffix in (("processed", "_processed"), ("raw", ""))
    ]
    return Task(
        name=name,
        labels=(),
        prompts=PROMPTS,
        source="https://github.com/salesforce/cos-e",
        licence="BSD-3-Clause",
        parts=("train", "validation"),
        formats=tuple(formats),
        hub=HubCopy(
            "Salesforce/cos_e", _from_hub, {"train": "train", "validation": "validation"}, name=version
        ),
        folders=("cos_e", "cos-e"),
    )


def _from_hub(values: Mapping[str, Any]) -> Example:
    choices = values.get("choices")
    if not isinstance(choices, list):
        raise RowError("no choices")
    return Example(
        text(values, "id"),
        {"question": text(values, "question")},
        tuple(choices),
        text(values, "answer"),
        (text(values, "abstractive_explanation"),),
    )


COS_E_V1_0 = _task("cos_e", "v1.0", choices=3)
COS_E_V1_11 = _task("cos_e_v1.11", "v1.11", choices=5)
