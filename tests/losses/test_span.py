from __future__ import annotations

import pytest
import torch

from caref.losses.span import span_mask


@pytest.mark.parametrize(
    ("row", "separator", "explanation"),
    [
        ([5, 9, 6, 7, 1], [9], "00111"),
        ([5, 9, 6, 9, 1], [9], "00111"),  # the first one counts
        ([9, 5, 6, 7, 1], [9], "01111"),
        ([5, 6, 7, 1, 9], [9], "00000"),  # nothing after it
        ([5, 6, 7, 1, -100], [9], "00000"),  # none: all answer
        ([5, 8, 9, 6, 1], [8, 9], "00011"),
        ([8, 8, 9, 6, 1], [8, 9], "00011"),  # overlapping start
        ([5, 8, 6, 9, 1], [8, 9], "00000"),
        ([-100, -100, 9, 6, 1], [9], "00011"),
        ([8, 9, 8, 9, 8], [8, 9, 8], "00011"),
        ([5, 9], [9, 9, 9], "00"),  # longer than the row
        ([9, 9, 9, 9], [9, 9, 9, 9, 9], "0000"),
        ([9, 9], [9, 9], "00"),
    ],
)
def test_where_the_explanation_begins(row: list[int], separator: list[int], explanation: str) -> None:
    labels = torch.tensor([row, row])
    expected = torch.tensor([[digit == "1" for digit in explanation]] * 2)
    assert torch.equal(span_mask(labels, "explanation", separator), expected)
    assert torch.equal(span_mask(labels, "answer", separator), ~expected)
    assert torch.equal(span_mask(labels[0], "answer", separator), ~expected[0])


def test_all_is_no_mask() -> None:
    assert span_mask(torch.tensor([[1, 2]]), "all", [1]) is None
