from __future__ import annotations

import pytest

from caref.errors import CarefError
from caref.protocol import FEB_SEEDS, parse_splits


def test_seeds() -> None:
    assert len(FEB_SEEDS) == len(set(FEB_SEEDS)) == 60
    assert FEB_SEEDS[:3] == (7004, 3639, 6290)
    assert FEB_SEEDS[-1] == 4791
    assert sum(FEB_SEEDS) == 278_038


@pytest.mark.parametrize(
    ("text", "splits"),
    [("0", (0,)), ("0-4,7", (0, 1, 2, 3, 4, 7)), (" 59 , 2 - 3 ", (59, 2, 3)), ("all", tuple(range(60)))],
)
def test_parse_splits(text: str, splits: tuple[int, ...]) -> None:
    assert parse_splits(text) == splits


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "numbers and ranges such as 0-4,7"),
        ("a", "numbers and ranges"),
        ("-1", "numbers and ranges"),
        ("1,,2", "numbers and ranges"),
        ("٣", "numbers and ranges"),
        ("4-2", "the range '4-2' runs backwards; write 2-4"),
        ("58-60", "there is no split 60; splits are 0 to 59"),
        ("0-999999999", "there is no split 999999999"),
        ("1-3,2", "split 2 is named twice"),
    ],
)
def test_bad_lists(text: str, message: str) -> None:
    with pytest.raises(CarefError) as raised:
        parse_splits(text)
    assert message in str(raised.value)
