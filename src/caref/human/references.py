"""The other reference explanations of a rated question: those that were not shown.

A metric that compares with references would give the gold explanation full marks against itself. What
it makes of a gold explanation shows only against what other people wrote for the same question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from caref.errors import DataError
from caref.human.ratings import RatedQuestion
from caref.tasks import get_task
from caref.tasks.pool import Part

PART: Part = "validation"
"""Where every rated question is from."""

Key = tuple[str, ...]


def same_text(text: str) -> str:
    """What two copies of a text share: its letters and digits in lower case.

    Copies of e-SNLI differ in their tokens (``does n't``, ``-LRB-`` for a bracket), and the ratings lack the
    full stop of a premise.

    Example:
        >>> same_text("It does n't rain -LRB- yet -RRB- .") == same_text("it doesn't rain (yet)")
        True
    """
    return re.sub(r"[^a-z0-9]", "", re.sub(r"-[lr]rb-", "", text.lower()))


def other_references(questions: Sequence[RatedQuestion], data: Path) -> list[tuple[str, ...]]:
    """For each question the references of its task that are not the gold explanation that was shown.

    Questions are found in their task's validation part by their text. A task may lie there in several
    formats; each question is taken from the first that holds it. ECQA has one explanation of each question.
    Its free-flow text is no second opinion: whoever wrote the properties joined them to it, and nine
    tenths of a gold explanation's words stand there again.

    Args:
        questions: Of any tasks.
        data: The folder that holds the data sets.

    Returns:
        Distinct texts, none where the data do not hold the question or know one explanation alone.

    Raises:
        DataError: If a data set is not in the folder, or its rows have problems.
    """
    known: dict[str, list[Mapping[Key, list[str]]]] = {}
    found = []
    for question in questions:
        if question.task not in known:
            known[question.task] = list(_explanations(question.task, data))
        key = tuple(map(same_text, question.shown))
        texts = next((each[key] for each in known[question.task] if key in each), [])
        distinct = {same_text(text): text for text in reversed(texts)}
        distinct.pop(same_text(question.gold_explanation.text), None)
        found.append(tuple(reversed(distinct.values())))
    return found


def _explanations(name: str, data: Path) -> Iterator[Mapping[Key, list[str]]]:
    """For each format in which the task lies in the folder, the explanations by question."""
    task = get_task(name)
    task.find(data, PART)  # raises where there is none at all
    for each in task.formats:
        try:
            task.find(data, PART, data_format=each.name)
        except DataError:
            continue
        texts: dict[Key, list[str]] = {}
        for example in task.load(data, PART, data_format=each.name):
            choices = () if task.labels else example.choices
            key = tuple(map(same_text, (*example.fields.values(), *choices)))
            texts.setdefault(key, []).extend(example.explanations)
        yield texts
