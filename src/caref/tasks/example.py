"""One example of a task: what is asked, what is right, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Fact(NamedTuple):
    """What is true of a thing, or false of it: ``Fact("knife", "used to", "cut bread")``."""

    thing: str
    relation: str
    value: str
    holds: bool = True


class Mention(NamedTuple):
    """Words of an example: the field (or ``"choices"``) and the words as they stand there, case aside."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """Why the answer is right, known because the example was made from it.

    Attributes:
        causes: The words of the input that make the answer right: change one, and it may be wrong.
        distractors: Words of the input that could be any others of their kind; wrong choices among them.
        facts: What must be known of the world to answer.
        cue: A word that goes with the answer and does not cause it, where one was planted.
    """

    causes: tuple[Mention, ...]
    distractors: tuple[Mention, ...]
    facts: tuple[Fact, ...]
    cue: Mention | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """One example, in the text of its release (no lower-casing; prompts do that).

    Attributes:
        id: Unique within a task's split, the same whatever the file order.
        fields: What prompt templates can name: ``{"premise": ..., "hypothesis": ...}``.
        choices: The candidate answers in their order, as the target names them; a task
            with fixed labels repeats its labels here. Empty for free-form answers.
        answer: The right answer; one of `choices` where there are any.
        explanations: The references, at least one; training uses the first.
        truth: Why the answer is right, where that is known for certain: in the starter world.
    """

    id: str
    fields: Mapping[str, str]
    choices: tuple[str, ...]
    answer: str
    explanations: tuple[str, ...]
    truth: GroundTruth | None = None
