"""A data set of the user's own, described by a YAML file next to its files.

The keys are those of `TaskKeys`; ``docs/data.md`` has an example.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from caref.errors import CarefError
from caref.tasks.example import Example
from caref.tasks.pool import Located, Part, Report, Row, RowError
from caref.tasks.prompt import FEB_TARGET, PromptFormat
from caref.tasks.prompt_file import PromptKeys, load_prompt
from caref.tasks.reading import read_rows
from caref.tasks.task import Format, Found, Task
from caref.tasks.yaml_file import read_yaml

__all__ = ["TaskKeys", "load_prompt", "load_task"]

Paths = str | list[str]
_RESERVED = {"answer", "explanation", "choices"}
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class TaskKeys(BaseModel):
    """The keys of a task in YAML."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    files: Paths | dict[Part, Paths] = Field(description="per part, or one for training and validation")
    fields: dict[str, str] = Field(min_length=1, description="name in templates to column")
    answer: str = Field(description="column")
    explanations: Paths = Field(description="columns, or one column of a text or a list")
    id: str | None = Field(default=None, description="column; without one the id is a hash of the row")
    labels: list[str] | dict[str, str] | None = Field(
        default=None, description="the answers, or value to answer"
    )
    choices: Paths | None = Field(default=None, description="columns, or one column of a list")
    answer_as: Literal["label", "text", "letter", "index"] | None = None
    prompts: dict[str, PromptKeys] = Field(default_factory=dict)
    source: str = ""
    licence: str = ""

    @field_validator("labels", mode="before")
    @classmethod
    def _plain_keys(cls, labels: Any) -> Any:
        return {_plain(key): word for key, word in labels.items()} if isinstance(labels, dict) else labels

    @model_validator(mode="after")
    def _agree(self) -> TaskKeys:
        if self.labels is not None and self.choices is not None:
            raise ValueError("give labels or choices, not both")
        if self.labels is not None and len(self.words) < 2:
            raise ValueError("labels: at least two are needed")
        if isinstance(self.labels, list) and len(set(self.labels)) < len(self.labels):
            raise ValueError("labels: one is named twice")
        if self.answer_as == "label" and self.labels is None:
            raise ValueError("answer_as: label needs labels")
        if self.answer_as in ("letter", "index") and self.labels is None and self.choices is None:
            raise ValueError(f"answer_as: {self.answer_as} needs labels or choices")
        for name in self.fields:
            if name in _RESERVED or not name.isidentifier():
                raise ValueError(
                    f"fields: {name!r} cannot name a field; use a word other than answer, "
                    "explanation and choices"
                )
        if not self.paths:
            raise ValueError("files: at least one part is needed")
        return self

    @property
    def words(self) -> tuple[str, ...]:
        """The fixed labels, in order, each once."""
        labels = self.labels.values() if isinstance(self.labels, dict) else self.labels or ()
        return tuple(dict.fromkeys(labels))

    @property
    def paths(self) -> dict[Part, list[str]]:
        """Part to its files."""
        if isinstance(self.files, dict):
            return {part: _as_list(paths) for part, paths in self.files.items()}
        return {"train": _as_list(self.files), "validation": _as_list(self.files)}


def load_task(path: Path) -> Task:
    """The task that a YAML file describes; its data files are relative to that file.

    Raises:
        CarefError: If the file does not describe a task; the message names the key.
    """
    keys = read_yaml(path, TaskKeys)

    def read(found: Found, part: Part, report: Report) -> Iterator[Located]:
        for file in (file for files in found.values() for file in files):
            rows = read_rows(file, report, columns=_columns(keys))
            yield from report.convert(rows, lambda row: _to_example(row, keys))

    try:
        prompts = {
            **_default_prompts(keys),
            **{name: each.to_format(name) for name, each in keys.prompts.items()},
        }
    except CarefError as error:
        raise CarefError(f"{path}: {error}") from None
    return Task(
        name=keys.name,
        labels=keys.words,
        prompts=prompts,
        source=keys.source or str(path),
        licence=keys.licence or "not stated",
        parts=tuple(keys.paths),
        formats=(
            Format(
                "files",
                {part: {name: (name,) for name in names} for part, names in keys.paths.items()},
                read,
            ),
        ),
        home=path.parent,
    )


def _to_example(row: Row, keys: TaskKeys) -> Example:
    values = row.values
    choices = keys.words if keys.labels is not None else _choices(values, keys)
    return Example(
        id=_cell(values, keys.id) if keys.id is not None else "",
        fields={name: _cell(values, column) for name, column in keys.fields.items()},
        choices=choices,
        answer=_answer(_cell(values, keys.answer), choices, keys),
        explanations=tuple(text for text in _cells(values, keys.explanations) if text.strip()),
    )


def _choices(values: Mapping[str, Any], keys: TaskKeys) -> tuple[str, ...]:
    """An example's own choices; empty cells at the end mean that it has fewer."""
    if keys.choices is None:
        return ()
    choices = _cells(values, keys.choices)
    while choices and not choices[-1].strip():
        choices.pop()
    if not choices:
        raise RowError("no choices")
    return tuple(choices)


def _answer(value: str, choices: tuple[str, ...], keys: TaskKeys) -> str:
    """The answer in words, from a label's value, a choice's text, letter or index from 0."""
    match keys.answer_as or ("label" if keys.labels is not None else "text"):
        case "label":
            known = keys.labels if isinstance(keys.labels, dict) else {word: word for word in keys.words}
            if value.strip() not in known:
                raise RowError(f"unknown label {value!r}; expected one of: {', '.join(known)}")
            return known[value.strip()]
        case "text":
            return value
        case "letter":
            allowed = list(_LETTERS[: len(choices)])
            wanted = value.strip().upper()
        case _:
            allowed = [str(number) for number in range(len(choices))]
            wanted = value.strip()
    if wanted not in allowed:
        raise RowError(f"answer {value!r} names no choice; expected one of: {', '.join(allowed)}")
    return choices[allowed.index(wanted)]


def _cells(values: Mapping[str, Any], columns: Paths) -> list[str]:
    """The texts of several columns, or of one column that holds a list or a text."""
    if isinstance(columns, list):
        return ["" if values.get(column) is None else _cell(values, column, blank=True) for column in columns]
    cell = values.get(columns)
    if isinstance(cell, list):
        return [_plain(item) for item in cell]
    return [_cell(values, columns, blank=True)]


def _cell(values: Mapping[str, Any], column: str, *, blank: bool = False) -> str:
    value = values.get(column)
    if value is None:
        raise RowError(f"no {column}")
    if isinstance(value, list | dict):
        raise RowError(f"{column} must be a text, got {value!r}")
    text = _plain(value)
    if not blank and not text.strip():
        raise RowError(f"empty {column}")
    return text


def _plain(value: Any) -> str:
    """A value as a table file would hold it: true and 1, not True and 1.0."""
    return value if isinstance(value, str) else json.dumps(value)


def _columns(keys: TaskKeys) -> list[str]:
    """The columns that a file must have."""
    columns = [
        *keys.fields.values(),
        keys.answer,
        *_as_list(keys.explanations),
        *_as_list(keys.choices or []),
    ]
    return list(dict.fromkeys([*columns, *([keys.id] if keys.id is not None else [])]))


def _as_list(paths: Paths) -> list[str]:
    return [paths] if isinstance(paths, str) else paths


def _default_prompts(keys: TaskKeys) -> dict[str, PromptFormat]:
    names = list(keys.fields)
    named = [f"{name}: {{{name}}}" for name in names] if len(names) > 1 else [f"{{{names[0]}}}"]
    has_choices = keys.labels is not None or keys.choices is not None
    asked = "\n".join(named) + ("\nOptions:\n{choices:lines}" if has_choices else "")
    how = "with one of the options" if has_choices else "the question"
    return {
        "feb": PromptFormat(
            name="feb",
            input=f"explain {' '.join(named)}" + (" \\n {choices!l:letters}" if has_choices else ""),
            target=FEB_TARGET,
            collapse=True,
        ),
        "instruction": PromptFormat(
            name="instruction",
            input=f"Answer {how}, then write because and explain why.\n\n{asked}\n\nAnswer:",
        ),
        "chat": PromptFormat(
            name="chat",
            input=f"{asked}\n\nAnswer {how}. Reply in one line of this form: <answer> because <explanation>",
            chat=True,
            system="You answer questions and explain each answer in one short sentence.",
        ),
    }
