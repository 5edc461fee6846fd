"""From an example to the text a model is given and the text it should write.

A prompt format is data: two templates and a separator, which a user can replace.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caref.errors import CarefError
from caref.tasks.example import Example
from caref.tasks.parsing import SEPARATOR, collapse

FEB_TARGET = "{answer!l} because {explanation!l}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One example as a model sees it.

    Attributes:
        id: The example's.
        input: What the model is given; the user's message of a chat.
        target: What it should write: answer, separator, explanation.
        answer: The right answer as the target writes it.
        candidates: All answers as the target would write them, in order, each once.
        separator: Between answer and explanation.
        chat: Whether `input` goes through the model's chat template.
        explanation: The first reference as the target writes it.
        system: The chat's system message, if any.
    """

    id: str
    input: str
    target: str
    answer: str
    candidates: tuple[str, ...]
    separator: str
    chat: bool
    explanation: str
    system: str | None = None


@dataclass(frozen=True, kw_only=True)
class PromptFormat:
    """Templates for input and target.

    A template names fields of the example in braces, ``{premise}``; ``{premise!l}`` is its text in
    lower case. ``{choices:letters}`` writes ``(A) x (B) y``, ``{choices:lines}`` one ``- x`` per
    line, ``{choices:comma}`` ``x, y``; ``{choices!l:letters}`` lowers the texts, not the letters.
    White space inside a value is collapsed.

    Attributes:
        name: As settings and results name it.
        input: May name the example's fields and ``choices``, not its answer or explanation.
        target: Names ``answer`` and then ``explanation``, with the separator between them.
        separator: What a generation is split at.
        context: The field that may be cut where the input is too long; None: nothing may be cut.
        chat: Whether the input is a message for a model's chat template.
        system: A chat's system message.
        collapse: Whether white space of the whole input and target is collapsed, as FEB does.

    Example:
        >>> colour = PromptFormat(name="colour", input="what colour is {thing!l}?")
        >>> prompt = colour.render(Example("1", {"thing": "Snow"}, (), "white", ("it is ice",)))
        >>> prompt.input, prompt.target
        ('what colour is snow?', 'white because it is ice')
    """

    name: str
    input: str
    target: str = "{answer} because {explanation}"
    separator: str = SEPARATOR
    context: str | None = None
    chat: bool = False
    system: str | None = None
    collapse: bool = False

    def __post_init__(self) -> None:
        before, separator, after = self.target.partition(self.separator)
        if not self.separator.strip() or not separator:
            raise CarefError(f"prompt {self.name!r}: the target must hold the separator {self.separator!r}")
        if _names(before) != {"answer"} or _names(after) != {"explanation"}:
            raise CarefError(
                f"prompt {self.name!r}: the target must name {{answer}} before the separator and "
                f"{{explanation}} after it, and nothing else; got {self.target!r}"
            )
        named = _names(self.input)
        if named & {"answer", "explanation"}:
            raise CarefError(f"prompt {self.name!r}: the input must not name the answer or the explanation")
        if not named:
            raise CarefError(f"prompt {self.name!r}: the input names no field of the example")
        if self.context is not None and self.context not in named - {"choices"}:
            raise CarefError(
                f"prompt {self.name!r}: the context {self.context!r} is no field that the input names; "
                f"it names: {', '.join(sorted(named))}"
            )
        if self.system is not None and not self.chat:
            raise CarefError(f"prompt {self.name!r}: a system message needs chat")

    def render(
        self, example: Example, *, context_words: int | None = None, explanation_words: int | None = None
    ) -> Prompt:
        """Fill both templates.

        Args:
            example: What to write.
            context_words: Keep this many words of the context field; None keeps all.
            explanation_words: Keep this many words of the explanation; None keeps all.

        Raises:
            CarefError: If a template names a field that the example has not, or if the context
                is to be cut and the format has none.
        """
        fields = dict(example.fields)
        if context_words is not None:
            if self.context is None:
                raise CarefError(
                    f"prompt {self.name!r} has no context field: nothing of its input may be cut"
                )
            if self.context in fields:
                fields[self.context] = _first_words(fields[self.context], context_words)
        explanation = example.explanations[0]
        if explanation_words is not None:
            explanation = _first_words(explanation, explanation_words)

        before, _, after = self.target.partition(self.separator)
        answer = self._fill(before, {"answer": example.answer})
        written = (self._fill(before, {"answer": choice}) for choice in example.choices)
        told = self._fill(after, {"explanation": explanation})
        target = f"{answer}{self.separator}{told}"
        return Prompt(
            id=example.id,
            input=self._fill(self.input, {**fields, "choices": example.choices}),
            target=collapse(target) if self.collapse else target.strip(),
            answer=answer,
            candidates=tuple(dict.fromkeys(written)),
            separator=self.separator,
            chat=self.chat,
            explanation=told,
            system=self.system,
        )

    def _fill(self, template: str, values: Mapping[str, str | Sequence[str]]) -> str:
        clean = {
            name: collapse(value) if isinstance(value, str) else _Choices(map(collapse, value))
            for name, value in values.items()
        }
        try:
            filled = _Filler().vformat(template, (), clean)
        except ValueError as error:
            raise CarefError(f"prompt {self.name!r}: {error} in {template!r}") from None
        return collapse(filled) if self.collapse else filled.strip()


class _Choices(tuple[str, ...]):
    """The choices inside a template."""

    def lower(self) -> _Choices:
        return _Choices(choice.lower() for choice in self)

    def __format__(self, spec: str) -> str:
        match spec:
            case "letters" if len(self) <= len(string.ascii_uppercase):
                return " ".join(f"({string.ascii_uppercase[n]}) {text}" for n, text in enumerate(self))
            case "letters":
                raise ValueError(f"{len(self)} choices are more than there are letters; use lines")
            case "lines":
                return "\n".join(f"- {text}" for text in self)
            case "comma":
                return ", ".join(self)
        raise ValueError(f"choices can be written as letters, lines or comma, not {spec!r}")


class _Filler(string.Formatter):
    """``str.format`` with plain names only, and ``!l`` for lower case."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        if field_name not in kwargs:
            raise ValueError(f"unknown field {field_name!r}; there are: {', '.join(kwargs)}")
        return kwargs[field_name], field_name

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion is None:
            return value
        if conversion == "l":
            return value.lower()
        raise ValueError(f"unknown conversion '!{conversion}'; there is: !l (lower case)")


def _names(template: str) -> set[str]:
    """The fields that a template names."""
    try:
        return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
    except ValueError as error:
        raise CarefError(f"not a template: {template!r}: {error} (write {{{{ for a brace)") from None


def _first_words(text: str, count: int) -> str:
    return " ".join(text.split()[:count])
