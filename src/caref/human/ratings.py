"""Reading the ratings published with FEB, in the form in which they were published.

Three people each said of a question's gold and of its generated explanation whether it justifies the
answer. A folder holds ``results/<task>/<system>_*.csv``, one row per person and HIT, and the batches
that were shown. https://github.com/allenai/feb, Apache-2.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from caref.errors import DataError
from caref.tasks import get_task
from caref.tasks.pool import Report, Row
from caref.tasks.reading import read_table

RATINGS = ("no", "w_no", "w_yes", "yes")
"""The words of a rating, from the worst; a rating is its place among them, 0 to 3."""

RATERS = 3
TASKS_PER_HIT = 10


@dataclass(frozen=True, slots=True)
class RatedExplanation:
    """An explanation as it was shown, and its three ratings: 0 no, 1 weak no, 2 weak yes, 3 yes."""

    text: str
    ratings: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RatedQuestion:
    """One question with its two rated explanations.

    Attributes:
        task: The data set, by its name among `caref.tasks.TASKS`.
        system: The model that explained: ``"base"``, ``"large"``, ``"3b"`` or ``"gpt3"``.
        id: The question's number within its file; another file has another question of that number.
        fields: What was shown, by the names that the task's prompts use.
        choices: The answers in the order of their codes.
        own_choices: Whether they are the question's own, and so part of what was shown.
        gold: The code of the right answer: its place among `choices`.
        gold_explanation: The data set's explanation.
        generated_explanation: The system's.
        answers: The code that each rater chose before rating, in the order of the ratings.
    """

    task: str
    system: str
    id: str
    fields: Mapping[str, str]
    choices: tuple[str, ...]
    own_choices: bool
    gold: int
    gold_explanation: RatedExplanation
    generated_explanation: RatedExplanation
    answers: tuple[int, ...]

    @property
    def gold_label(self) -> str:
        """The right answer in words."""
        return self.choices[self.gold]

    @property
    def shown(self) -> tuple[str, ...]:
        """The texts that make the question: the same for two systems that were asked the same."""
        return (*self.fields.values(), *(self.choices if self.own_choices else ()))


@dataclass(frozen=True)
class _Layout:
    """How the files of a task name what was shown of question k, after ``Input.``."""

    task: str
    fields: Mapping[str, str]
    choices: tuple[str, ...] = ()

    def labels(self) -> tuple[str, ...]:
        return get_task(self.task).labels

    def columns(self, k: int) -> Iterator[str]:
        for name in (*self.fields.values(), *self.choices, "explanation_{k}_i", "explanation_{k}_j"):
            yield f"Input.{name.format(k=k)}"
        yield from (f"Input.{k}_gt_idx", f"Input.{k}_ques_id", f"Input.gt_{k}")


_LAYOUTS = {
    "ecqa": _Layout("ecqa", {"question": "question_{k}"}, tuple(f"answer_{{k}}_{each}" for each in "abcde")),
    "esnli": _Layout("esnli", {"premise": "question_{k}_i", "hypothesis": "question_{k}_j"}),
    "sensemaking": _Layout("comve", {"sent0": "question_{k}_i", "sent1": "question_{k}_j"}),
}
"""The name of a task's folder to its layout."""


def read_ratings(folder: Path) -> tuple[RatedQuestion, ...]:
    """Every rated question, by task and then by system, in the order of the files.

    A column of the input that a results file lacks is taken from the batch file that was shown. Columns
    that are none of the form's, such as remarks of the raters, are not read.

    Args:
        folder: Holds ``results/`` and, where a results file lacks a column, ``batches/``.

    Raises:
        DataError: If a file is missing or is not of that form: an unknown rating, task or code, three rows
            that were not shown the same, a question without exactly three ratings. The message names
            file, line and column.
    """
    results = folder / "results"
    if not results.is_dir():
        raise DataError(f"no folder {results}; expected FEB's human_eval: results/<task>/<system>_*.csv")
    questions: list[RatedQuestion] = []
    for each in sorted(path for path in results.iterdir() if path.is_dir()):
        if each.name not in _LAYOUTS:
            raise DataError(f"{each}: unknown task {each.name!r}; expected one of: {', '.join(_LAYOUTS)}")
        for file in sorted(each.glob("*.csv")):
            questions += _read_file(file, folder / "batches")
    if not questions:
        raise DataError(f"no results/<task>/<system>_*.csv in {folder}")
    return tuple(questions)


def _read_file(file: Path, batches: Path) -> Iterator[RatedQuestion]:
    layout, system = _LAYOUTS[file.parent.name], file.name.partition("_")[0]
    rows = _completed(_rows(file), file, layout, system, batches)
    seen: dict[str, Row] = {}
    for start in range(0, len(rows), RATERS):
        hit = rows[start : start + RATERS]
        if len(hit) < RATERS:
            raise DataError(f"{file}:{hit[0].line}: {len(hit)} ratings of a HIT; expected {RATERS}")
        for k in range(1, TASKS_PER_HIT + 1):
            question = _question(hit, k, layout, system)
            if question.id in seen:
                raise _wrong(
                    hit[0],
                    f"Input.{k}_ques_id",
                    f"{question.id!r} is that of line {seen[question.id].line} too",
                )
            seen[question.id] = hit[0]
            yield question


def _rows(file: Path) -> list[Row]:
    report = Report()
    rows = list(read_table(file, report))
    if report.problems:
        raise DataError(str(report.problems[0]))
    if not rows:
        raise DataError(f"{file}: no row")
    return rows


def _completed(rows: list[Row], file: Path, layout: _Layout, system: str, batches: Path) -> list[Row]:
    """The rows with the columns of the input that their file lacks, from the batch of the same HITs."""
    numbers = range(1, TASKS_PER_HIT + 1)
    there = set(rows[0].values)
    answers = [f"Answer.{name}" for k in numbers for name in (f"{k}-e1", f"{k}-e2", f"c{k}")]
    ids = [f"Input.{k}_ques_id" for k in numbers]
    if absent := [name for name in (*ids, *answers) if name not in there]:
        raise DataError(f"{file}:1: no column {absent[0]}")
    lacking = [name for k in numbers for name in layout.columns(k) if name not in there]
    if not lacking:
        return rows
    pattern = f"human_eval_{file.parent.name}_*{system}_input.csv"
    found = sorted(batches.glob(pattern))
    if len(found) != 1:
        raise DataError(
            f"{file}:1: no column {lacking[0]}, and {len(found)} files {batches / pattern} to take it from"
        )
    shown = _rows(found[0])
    if len(shown) * RATERS != len(rows):
        raise DataError(f"{found[0]}: {len(shown)} HITs; {file} has {len(rows) / RATERS:g}")
    completed = []
    for place, row in enumerate(rows):
        batch = {f"Input.{name}": value for name, value in shown[place // RATERS].values.items()}
        for name in (*ids, *lacking):
            if name not in batch or (name in ids and batch[name] != row.values[name]):
                raise _wrong(row, name, f"{found[0]}:{shown[place // RATERS].line} does not have it so")
        completed.append(Row(row.file, row.line, {**row.values, **{name: batch[name] for name in lacking}}))
    return completed


def _question(hit: Sequence[Row], k: int, layout: _Layout, system: str) -> RatedQuestion:
    first = hit[0]
    for row in hit:
        for name in layout.columns(k):
            if row.values[name] != first.values[name]:
                raise _wrong(row, name, f"{row.values[name]!r} is not what the HIT's first row has")
            if not row.values[name].strip():
                raise _wrong(row, name, "empty")

    def text(name: str) -> str:
        return first.values[f"Input.{name.format(k=k)}"]

    labels = layout.labels()
    choices = labels or tuple(map(text, layout.choices))
    codes = tuple(map(str, range(len(choices))))
    gold_first = _code(first, f"Input.{k}_gt_idx", ("0", "1")) == 0
    shown = [
        RatedExplanation(
            text(f"explanation_{{k}}_{side}"),
            tuple(_code(row, f"Answer.{k}-e{number}", RATINGS) for row in hit),
        )
        for number, side in ((1, "i"), (2, "j"))
    ]
    return RatedQuestion(
        task=layout.task,
        system=system,
        id=text("{k}_ques_id"),
        fields={field: text(name) for field, name in layout.fields.items()},
        choices=choices,
        own_choices=not labels,
        gold=_code(first, f"Input.gt_{k}", codes),
        gold_explanation=shown[0 if gold_first else 1],
        generated_explanation=shown[1 if gold_first else 0],
        answers=tuple(_code(row, f"Answer.c{k}", codes) for row in hit),
    )


def _code(row: Row, column: str, known: Sequence[str]) -> int:
    """The place of a cell's word among those it can be."""
    word = row.values[column]
    if word not in known:
        raise _wrong(row, column, f"unknown {word!r}; expected one of: {', '.join(known)}")
    return known.index(word)


def _wrong(row: Row, column: str, what: str) -> DataError:
    return DataError(f"{row.file}:{row.line}: {column}: {what}")
