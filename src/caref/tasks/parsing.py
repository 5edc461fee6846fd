"""Reading the answer and the explanation from a generated text, by the rules of FEB."""

from __future__ import annotations

from typing import NamedTuple

SEPARATOR = " because "
NO_EXPLANATION = "UNK"


class ParsedAnswer(NamedTuple):
    """A generation taken apart; `broken` where no separator was found."""

    answer: str
    explanation: str
    broken: bool


def collapse(text: str) -> str:
    """Every run of white space made one blank, none at the ends."""
    return " ".join(text.split())


def parse_answer(text: str, separator: str = SEPARATOR) -> ParsedAnswer:
    """Split a generation at the first separator.

    What stands before it is the answer, what follows is the explanation, which a second separator
    cuts short. Without a separator the whole text is the answer, the explanation is the
    placeholder ``UNK``, and the generation is broken. White space is collapsed first, in the
    separator too, so that one with a line break is found. Case matters.

    The separator needs something on both sides, since outer blanks are stripped as in FEB: a text
    that begins with ``because`` or ends with it is broken. An empty text is a broken, empty answer.

    Example:
        >>> parse_answer("yes because it rains because of clouds")
        ParsedAnswer(answer='yes', explanation='it rains', broken=False)
        >>> parse_answer("neutral because")
        ParsedAnswer(answer='neutral because', explanation='UNK', broken=True)
        >>> parse_answer("yes because because it rains").explanation
        'because it rains'

    Source:
        Marasovic et al., 2022, arXiv:2111.08284.
    """
    parts = collapse(text).split(collapse_inside(separator))
    if len(parts) == 1:
        return ParsedAnswer(parts[0], NO_EXPLANATION, broken=True)
    return ParsedAnswer(parts[0].strip(), parts[1].strip(), broken=False)


def collapse_inside(separator: str) -> str:
    """A separator with every run of white space made one blank, those at its ends kept."""
    before = " " if separator[:1].isspace() else ""
    after = " " if separator[-1:].isspace() else ""
    return before + collapse(separator) + after
