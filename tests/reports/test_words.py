from __future__ import annotations

from collections.abc import Callable

import pytest

from caref.reports import words
from caref.reports.summary import PAIRED, Difference, Summary
from caref.statistics.paired import PairedDifference

ACCURACY, BRIER = PAIRED[0], PAIRED[-1]
COMPARED = ("CE", "CAREF")
RIGHT, WRONG = ("yes because it is so", 0.75), ("no because it is not", 0.25)


def difference(paired: object, mean: float, low: float, high: float, p: float, verdict: str) -> Difference:
    return Difference(paired, PairedDifference(mean, low, high, p, 3, 600, 0), verdict)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            difference(ACCURACY, 3.21, 1.04, 5.36, 0.0023, "better"),
            "accuracy: CAREF is better than CE by 3.2 points (95 % interval +1.0 to +5.4, p = 0.002)",
        ),
        (
            difference(ACCURACY, -3.21, -5.36, -1.04, 0.0001, "worse"),
            "accuracy: CAREF is worse than CE by 3.2 points (95 % interval −5.4 to −1.0, p < 0.001)",
        ),
        (
            difference(ACCURACY, 0.5, -2.0, 3.0, 0.61, "not distinguishable"),
            "accuracy: CAREF is not distinguishable from CE here: +0.5 points "
            "(95 % interval −2.0 to +3.0, p = 0.61)",
        ),
        (
            difference(BRIER, -0.0512, -0.08, -0.02, 0.012, "better"),
            "Brier score: CAREF is better than CE by 0.051 (95 % interval −0.080 to −0.020, p = 0.012)",
        ),
    ],
)
def test_sentences(given: Difference, told: str) -> None:
    assert words.sentence(given, COMPARED) == told


def test_what_rounds_to_0_has_no_sign() -> None:
    assert [words.number(value, 1, sign=True) for value in (0.04, -0.04, 0.0)] == ["0.0", "0.0", "0.0"]


def test_the_overview_counts_tasks(make_summary: Callable[..., Summary]) -> None:
    better, alike = make_summary([RIGHT] * 20), make_summary([WRONG] * 20)
    both = Summary(better.settings, better.compared, [better.tasks[0], alike.tasks[0]], better.environment)
    assert words.overview(both)[0] == (
        "accuracy: CAREF is better than CE on 1 of 2 tasks, worse on 0, not distinguishable on 1"
    )
    assert words.overview(alike)[0] == "accuracy: CAREF is not distinguishable from CE on this task"


def test_caution_grows_with_comparisons_and_falls_with_splits(make_summary: Callable[..., Summary]) -> None:
    told = words.caution(make_summary([RIGHT] * 4))
    assert told[0].startswith("these are 3 comparisons, each at the level of 5 %")
    assert "0.1 of them" in told[0] or "0.2 of them" in told[0]
    assert told[1].startswith("there are 2 splits: the interval is too narrow")
