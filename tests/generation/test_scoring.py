from __future__ import annotations

import math
from typing import Any

import pytest

from caref.generation.scoring import score_answers

TEXTS = ("the dog", "why is the sky blue? who keeps the money of a man", "yes or no")
CANDIDATES = ("bank", "bank account", "yes", "friend's house", "no money in the house")


def test_scores_are_those_of_a_plain_forward_pass(tiny: Any) -> None:
    ids = [tiny.encoder.answer_ids(candidate) for candidate in CANDIDATES]
    rows = score_answers(tiny.read(TEXTS), [ids] * len(TEXTS))
    assert [len(row) for row in rows] == [5, 5, 5]
    for text, row in zip(TEXTS, rows, strict=True):
        for tokens, score in zip(ids, row, strict=True):
            expected = math.fsum(tiny.log_probs(text, tokens))
            assert score.log_prob_sum == pytest.approx(expected, abs=1e-4, rel=1e-5)
            assert score.log_prob_mean == pytest.approx(score.log_prob_sum / len(tokens), rel=1e-6)


@pytest.mark.parametrize("max_tokens", [1, 7, 20, 10_000])
def test_how_many_go_at_once_does_not_matter(tiny: Any, max_tokens: int) -> None:
    ids = [tiny.encoder.answer_ids(candidate) for candidate in CANDIDATES]
    answers = [ids, ids[2:4], ids[::-1]]
    whole = score_answers(tiny.read(TEXTS), answers)
    parts = score_answers(tiny.read(TEXTS), answers, max_tokens=max_tokens)
    for row, other in zip(whole, parts, strict=True):
        assert [s.log_prob_sum for s in row] == pytest.approx([s.log_prob_sum for s in other], abs=1e-4)
    assert [s.log_prob_sum for s in whole[2]] != pytest.approx([s.log_prob_sum for s in whole[0]], abs=1e-2)


def test_the_other_rows_do_not_matter(tiny: Any) -> None:
    ids = [tiny.encoder.answer_ids(candidate) for candidate in CANDIDATES]
    together = score_answers(tiny.read(TEXTS), [ids] * 3)
    for text, row in zip(TEXTS, together, strict=True):
        (alone,) = score_answers(tiny.read([text]), [ids])
        assert [s.log_prob_sum for s in row] == pytest.approx([s.log_prob_sum for s in alone], abs=1e-4)


def test_rows_without_answers(tiny: Any) -> None:
    ids = [tiny.encoder.answer_ids("yes")]
    rows = score_answers(tiny.read(TEXTS), [[], ids, []])
    assert [len(row) for row in rows] == [0, 1, 0]
    assert score_answers(tiny.read(TEXTS), [[], [], []]) == [[], [], []]
