"""e-SNLI: does a premise entail a hypothesis, contradict it or neither, and why.

Camburu et al., 2018, arXiv:1812.01193. Training rows have one explanation, the others up to
three. The label codings of the copies differ: ``las`` counts neutral first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from caref.tasks.example import Example
from caref.tasks.pool import Located, Part, Report, Row, RowError
from caref.tasks.prompt import FEB_TARGET, PromptFormat
from caref.tasks.reading import optional_texts, read_json_array, read_jsonl, read_table, text
from caref.tasks.task import Format, Found, HubCopy, Task

LABELS = ("entailment", "neutral", "contradiction")
_WORDS = {label: label for label in LABELS}
_NUMBERS = {str(number): label for number, label in enumerate(LABELS)}
_LAS_NUMBERS = {"0": "neutral", "1": "entailment", "2": "contradiction"}

PROMPTS = {
    "feb": PromptFormat(
        name="feb",
        input="explain nli hypothesis: {hypothesis} premise: {premise}",
        target=FEB_TARGET,
        context="premise",
        collapse=True,
    ),
    "instruction": PromptFormat(
        name="instruction",
        input=(
            "Is the hypothesis true given the premise (entailment), false (contradiction), or neither "
            "(neutral)? Answer with one of these words, then write because and explain why.\n\n"
            "Premise: {premise}\nHypothesis: {hypothesis}\n\nAnswer:"
        ),
        context="premise",
    ),
    "chat": PromptFormat(
        name="chat",
        input=(
            "Premise: {premise}\nHypothesis: {hypothesis}\n\n"
            "Does the premise make the hypothesis true (entailment), false (contradiction), "
            "or neither (neutral)? Reply in one line of this form: "
            "<entailment, neutral or contradiction> because <explanation>"
        ),
        context="premise",
        chat=True,
        system="You judge whether one sentence follows from another and explain why in one short sentence.",
    ),
}


def _example(
    values: Mapping[str, Any],
    *,
    id_: str,
    premise: str,
    hypothesis: str,
    label: str,
    labels: Mapping[str, str],
    explanations: tuple[str, ...],
) -> Example:
    """An example from named columns; all explanations but the first may be absent or empty."""
    word = str(values.get(label, "")).strip()
    if word not in labels:
        raise RowError(f"unknown label {word!r}; expected one of: {', '.join(labels)}")
    return Example(
        id_,
        {"premise": text(values, premise), "hypothesis": text(values, hypothesis)},
        LABELS,
        labels[word],
        (text(values, explanations[0]), *optional_texts(values, *explanations[1:])),
    )


def _original(row: Row) -> Example:
    return _example(
        row.values,
        id_=text(row.values, "pairID"),
        premise="Sentence1",
        hypothesis="Sentence2",
        label="gold_label",
        labels=_WORDS,
        explanations=("Explanation_1", "Explanation_2", "Explanation_3"),
    )


def _las(row: Row) -> Example:
    return _example(
        row.values,
        id_=text(row.values, "unique_key"),
        premise="premise",
        hypothesis="hypothesis",
        label="label",
        labels=_LAS_NUMBERS,
        explanations=("explanation1", "explanation2", "explanation3"),
    )


def _numbered(values: Mapping[str, Any]) -> Example:
    """A row without an id and with a numbered label: the hub's copy, and files made from it."""
    return _example(
        values,
        id_="",
        premise="premise",
        hypothesis="hypothesis",
        label="label",
        labels=_NUMBERS,
        explanations=("explanation_1", "explanation_2", "explanation_3"),
    )


def _ye_durrett(row: Row) -> Example:
    explanations = row.values.get("explanations")
    if not isinstance(explanations, list) or not explanations:
        raise RowError("no explanations")
    texts = {f"text{number}": text(each, "text_explanation") for number, each in enumerate(explanations)}
    return _example(
        {**row.values, **texts},
        id_=text(row.values, "id"),
        premise="premise",
        hypothesis="hypothesis",
        label="label",
        labels=_WORDS,
        explanations=tuple(texts),
    )


def _reader(
    read_file: Callable[..., Iterator[Row]], to_example: Callable[[Row], Example], **options: Any
) -> Callable[[Found, Part, Report], Iterator[Located]]:
    def read(found: Found, part: Part, report: Report) -> Iterator[Located]:
        for file in (file for files in found.values() for file in files):
            yield from report.convert(read_file(file, report, **options), to_example)

    return read


_ORIGINAL_COLUMNS = ("pairID", "gold_label", "Sentence1", "Sentence2", "Explanation_1")
_LAS_COLUMNS = (
    "unique_key",
    "label",
    "premise",
    "hypothesis",
    "explanation1",
    "explanation2",
    "explanation3",
)

ESNLI = Task(
    name="esnli",
    labels=LABELS,
    prompts=PROMPTS,
    source="https://github.com/OanaMariaCamburu/e-SNLI",
    licence="MIT; the SNLI sentences CC-BY-SA-4.0",
    parts=("train", "validation", "test"),
    formats=(
        Format(
            "original-csv",
            {
                "train": {
                    "first": ("esnli_train_1.csv", "dataset/esnli_train_1.csv"),
                    "second": ("esnli_train_2.csv", "dataset/esnli_train_2.csv"),
                },
                "validation": {"file": ("esnli_dev.csv", "dataset/esnli_dev.csv")},
                "test": {"file": ("esnli_test.csv", "dataset/esnli_test.csv")},
            },
            _reader(read_table, _original, columns=_ORIGINAL_COLUMNS),
        ),
        Format(
            "ukplab",
            {
                "train": {
                    "files": (
                        "ukplab/random/sub_*/512/train_select.json",
                        "random/sub_*/512/train_select.json",
                    )
                },
                "validation": {"file": ("ukplab/val_select.json", "val_select.json")},
            },
            _reader(read_jsonl, lambda row: _numbered(row.values)),
        ),
        Format(
            "ye_durrett",
            {
                "train": {"file": ("ye_durrett/train.json", "train.json")},
                "validation": {"file": ("ye_durrett/dev.json", "dev.json")},
            },
            _reader(read_json_array, _ye_durrett),
        ),
        Format(
            "las-tokenised",
            {
                "validation": {"file": ("las/dev.tsv", "dev.tsv")},
                "test": {"file": ("las/test.tsv", "test.tsv")},
            },
            _reader(read_table, _las, columns=_LAS_COLUMNS, delimiter="\t", quoting=False),
        ),
    ),
    # the repository's main branch holds a loading script; the converted files need none
    hub=HubCopy(
        "esnli/esnli",
        _numbered,
        {"train": "train", "validation": "validation", "test": "test"},
        revision="refs/convert/parquet",
    ),
    folders=("esnli", "e-SNLI"),
)
