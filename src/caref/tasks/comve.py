"""ComVE (SenseMaking): which of two sentences makes no sense, and why.

Wang et al., 2020, arXiv:2007.00236 (SemEval-2020 task 4). The sentences and answers are those of
sub-task A, the explanations the references of sub-task C. The label is the nonsensical
sentence: the release's 0 is ``choice1``, its 1 is ``choice2``, as FEB writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from caref.tasks.example import Example
from caref.tasks.pool import Located, Part, Report, Row
from caref.tasks.prompt import FEB_TARGET, PromptFormat
from caref.tasks.reading import read_table
from caref.tasks.task import Format, Found, Task

LABELS = ("choice1", "choice2")
_REFERENCES = ("reference1", "reference2", "reference3")

PROMPTS = {
    "feb": PromptFormat(
        name="feb",
        input="explain what is more nonsensical? \\n choice1: {sent0!l} choice2: {sent1!l}",
        target=FEB_TARGET,
        collapse=True,
    ),
    "instruction": PromptFormat(
        name="instruction",
        input=(
            "Which of the two sentences makes no sense? Answer choice1 or choice2, then write because "
            "and explain why it makes no sense.\n\nchoice1: {sent0}\nchoice2: {sent1}\n\nAnswer:"
        ),
    ),
    "chat": PromptFormat(
        name="chat",
        input=(
            "Which of these two sentences makes no sense?\nchoice1: {sent0}\nchoice2: {sent1}\n\n"
            "Reply in one line of this form: choice1 or choice2, then the word because, then the explanation."
        ),
        chat=True,
        system="You find the sentence that goes against common sense and explain why in one short sentence.",
    ),
}


def _read(found: Found, part: Part, report: Report) -> Iterator[Located]:
    """Join the three files by id; a training row becomes one example per reference."""
    sentences = _by_id(found["sentences"][0], ("id", "sent0", "sent1"), report, header=True)
    answers = _by_id(found["answers"][0], ("id", "label"), report)
    references = _by_id(found["references"][0], ("id", *_REFERENCES), report)
    for id_, row in sentences.items():
        if id_ not in answers or id_ not in references:
            lacking = found["answers" if id_ not in answers else "references"][0]
            report.add(row.file, row.line, f"id {id_!r} is not in {lacking}")
            continue
        label = answers[id_].values["label"].strip()
        if label not in ("0", "1"):
            report.add(answers[id_].file, answers[id_].line, f"unknown label {label!r}; expected 0 or 1")
            continue
        texts = tuple(references[id_].values[name] for name in _REFERENCES)
        fields = {name: row.values[name] for name in ("sent0", "sent1")}
        groups = (
            [(id_, texts)] if part != "train" else [(f"{id_}-{k}", (each,)) for k, each in enumerate(texts)]
        )
        for example_id, explanations in groups:
            place = references[id_] if not all(each.strip() for each in explanations) else row
            example = Example(example_id, fields, LABELS, LABELS[int(label)], explanations)
            yield Located(place.file, place.line, example)
    for others in (answers, references):
        for id_, row in others.items():
            if id_ not in sentences:
                report.add(row.file, row.line, f"id {id_!r} is not in {found['sentences'][0]}")


def _by_id(path: Path, columns: tuple[str, ...], report: Report, *, header: bool = False) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for row in read_table(path, report, columns=columns, header=header):
        id_ = row.values["id"].strip()
        if id_ in rows:
            report.add(
                row.file, row.line, f"duplicate id {id_!r}, first seen at {rows[id_].file}:{rows[id_].line}"
            )
        elif not id_:
            report.add(row.file, row.line, "empty id")
        else:
            rows[id_] = row
    return rows


def _files(folder: str, sentences: str, answers: str, references: str) -> Mapping[str, tuple[str, ...]]:
    # the release writes "Training  Data" with two blanks; copies often have an underscore
    names = {"sentences": sentences, "answers": answers, "references": references}
    return {role: (f"{folder}*Data/{name}", f"ALL data/{folder}*Data/{name}") for role, name in names.items()}


COMVE = Task(
    name="comve",
    labels=LABELS,
    prompts=PROMPTS,
    source="https://github.com/wangcunxiang/SemEval2020-Task4-Commonsense-Validation-and-Explanation",
    licence="CC-BY-SA-4.0",
    parts=("train", "validation", "test"),
    formats=(
        Format(
            "release-csv",
            {
                "train": _files(
                    "Training",
                    "subtaskA_data_all.csv",
                    "subtaskA_answers_all.csv",
                    "subtaskC_answers_all.csv",
                ),
                "validation": _files(
                    "Dev", "subtaskA_dev_data.csv", "subtaskA_gold_answers.csv", "subtaskC_gold_answers.csv"
                ),
                "test": _files(
                    "Test", "subtaskA_test_data.csv", "subtaskA_gold_answers.csv", "subtaskC_gold_answers.csv"
                ),
            },
            _read,
        ),
    ),
    folders=("comve", "ComVE", "sensemaking"),
)
