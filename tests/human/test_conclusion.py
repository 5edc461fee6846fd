from __future__ import annotations

from dataclasses import replace

import pytest

from caref.human.conclusion import UNKNOWN, conclusion, edge_of_guessing
from caref.human.differences import Bin, Differences, SystemPair

GUESSED = Bin(0, 1, 100, 10, 0.499, (0.48, 0.52), -0.1)
UNSURE = Bin(1, 2, 100, 10, 0.51, (0.49, 0.53), 0.5)
TOLD = Bin(2, 5, 100, 10, 0.55, (0.53, 0.57), 2.0)
FAR = Bin(5, None, 100, 10, 0.7, (0.68, 0.72), 20.0)
RIGHT = SystemPair("esnli", "large", "base", 2.5, 10.0)
WRONG = SystemPair("comve", "base", "gpt3", 0.93, -8.76)


@pytest.mark.parametrize(
    ("bins", "edge"),
    [
        ([GUESSED, UNSURE, TOLD, FAR], 2),
        ([GUESSED, TOLD, UNSURE], 1),
        ([TOLD, FAR], 0),
        ([GUESSED, replace(UNSURE, interval=(0.5004, 0.53)), TOLD], 2),  # printed as 50.0
        ([], 0),
        ([replace(FAR, interval=(0.4, 0.6))], 0),
        ([replace(GUESSED, interval=None), UNSURE], 0),
        ([replace(GUESSED, concordance=0.4, interval=(0.38, 0.42))], 1),
    ],
)
def test_the_edge_of_guessing(bins: list[Bin], edge: float) -> None:
    assert edge_of_guessing(bins) == edge


def test_every_number_of_the_conclusion_is_from_the_table() -> None:
    found = Differences({"encoder": "tiny"}, [GUESSED, UNSURE, TOLD, FAR], [], [RIGHT, WRONG])
    first, guessing, systems, so, last = conclusion(found)
    assert first.endswith(
        "by tiny is the better rated in 49.9 % (48.0 to 52.0) at 0 to 1 points; in 51.0 % (49.0 to 53.0) "
        "at 1 to 2 points; in 55.0 % (53.0 to 57.0) at 2 to 5 points; in 70.0 % (68.0 to 72.0) "
        "at 5 points or more. Guessing gives 50 %."
    )
    assert guessing.startswith("With less than 2 points between the two")
    assert "in 1 of 2 pairs of systems" in systems
    assert "0.93 points (on comve, base above gpt3, but 8.8 of 100 less plausible)" in systems
    assert so.startswith("So 0.93 points or less")
    assert "accuracy" in last


def test_where_nothing_points_the_wrong_way_no_limit_is_claimed() -> None:
    found = Differences({"encoder": "tiny"}, [TOLD, FAR], [], [RIGHT])
    told = conclusion(found)
    assert len(told) == 3
    assert told[1].endswith("more plausible in 1 of 1 pairs of systems.")


def test_without_bertscore() -> None:
    assert conclusion(None) == [UNKNOWN]
