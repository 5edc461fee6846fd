"""One example of a task: what is asked, what is right, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
    """

    id: str
    fields: Mapping[str, str]
    choices: tuple[str, ...]
    answer: str
    explanations: tuple[str, ...]
