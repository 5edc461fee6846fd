from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caref.tasks.parsing import NO_EXPLANATION, collapse, parse_answer


@pytest.mark.parametrize(
    ("text", "answer", "explanation", "broken"),
    [
        ("yes because it rains", "yes", "it rains", False),
        ("  yes   because\n it  rains ", "yes", "it rains", False),
        ("yes because it rains because of clouds", "yes", "it rains", False),
        ("yes because because it rains", "yes", "because it rains", False),
        ("yes", "yes", NO_EXPLANATION, True),
        ("yes because", "yes because", NO_EXPLANATION, True),
        ("yes because ", "yes because", NO_EXPLANATION, True),
        ("because it rains", "because it rains", NO_EXPLANATION, True),
        ("yes Because it rains", "yes Because it rains", NO_EXPLANATION, True),
        ("yes becauseit rains", "yes becauseit rains", NO_EXPLANATION, True),
        ("", "", NO_EXPLANATION, True),
    ],
)
def test_rules(text: str, answer: str, explanation: str, broken: bool) -> None:
    assert parse_answer(text) == (answer, explanation, broken)


def test_other_separators() -> None:
    assert parse_answer("B\nExplanation: it is", "\nExplanation: ") == ("B", "it is", False)
    assert parse_answer("B Explanation: it is", "\nExplanation: ") == ("B", "it is", False)
    assert parse_answer("B||it is", "||") == ("B", "it is", False)


@given(st.text(), st.text())
def test_what_was_joined_comes_apart(answer: str, explanation: str) -> None:
    answer, explanation = collapse(answer), collapse(explanation)
    text = f"{answer} because {explanation}"
    if answer and explanation and text.count("because") == 1:
        assert parse_answer(text) == (answer, explanation, False)
    parse_answer(answer)
