from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from caref.reports import words
from caref.reports.differences import PAIRED, Difference
from caref.reports.summary import Summary, TaskSummary
from caref.results.factors import DecomposedDifference, Factors
from caref.statistics.decomposition import decompose
from caref.statistics.paired import PairedDifference

ACCURACY, BRIER, SCALED = PAIRED[0], PAIRED[3], replace(PAIRED[4], name="Brier score, CE scaled")
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
        (
            difference(SCALED, 0.0512, 0.02, 0.08, 0.012, "worse"),
            "Brier score, CE scaled: CAREF is worse than what temperature scaling alone makes of CE by 0.051 "
            "(95 % interval +0.020 to +0.080, p = 0.012)",
        ),
        (
            difference(SCALED, 0.01, -0.02, 0.04, 0.5, "not distinguishable"),
            "Brier score, CE scaled: CAREF is not distinguishable from what temperature scaling alone makes "
            "of CE here: +0.010 (95 % interval −0.020 to +0.040, p = 0.50)",
        ),
    ],
)
def test_sentences(given: Difference, told: str) -> None:
    assert words.sentence(given, COMPARED) == told


def test_a_row_names_what_it_is_compared_with() -> None:
    assert words.verdict(difference(BRIER, 1, 1, 1, 0.01, "worse"), COMPARED) == "CAREF is worse than CE"
    scaled = difference(SCALED, 1, 1, 1, 0.01, "worse")
    assert words.verdict(scaled, COMPARED) == "CAREF is worse than scaled CE"


def parted(task: TaskSummary, *means: float, interval: tuple[float, float] | None) -> TaskSummary:
    none = Factors(0.0, None, 0.0)
    parts = DecomposedDifference("t", "CE", "CAREF", none, none, decompose(*means), interval, interval)
    return replace(task, nbert_parts=parts)


def test_the_parts_of_a_difference_in_nbert(make_summary: Callable[..., Summary]) -> None:
    (task,) = make_summary([RIGHT] * 2).tasks
    assert words.parts(task) == []
    assert words.parts(parted(task, 80.0, 70.0, 90.0, 80.0, interval=(-1.25, 9.96))) == [
        "nBERT: of the +10.0 points, +8.8 by accuracy (95 % interval −1.2 to +10.0), +1.2 by explanations of "
        "right answers (−1.2 to +10.0)"
    ]
    assert words.parts(parted(task, 50.0, 40.0, 50.0, 40.0, interval=None)) == [
        "nBERT: of the 0.0 points, 0.0 by accuracy, 0.0 by explanations of right answers"
    ]
    assert words.parts(parted(task, 0.0, 0.0, 50.0, 40.0, interval=None)) == [
        "nBERT: no parts of the difference: one of the two has no right answer, so its F1 given right is "
        "undefined"
    ]


def test_temperature_scaling_is_explained_where_it_was_compared(make_summary: Callable[..., Summary]) -> None:
    (told,) = words.temperature(make_summary([RIGHT] * 20))
    assert "trains nothing: a gain of CAREF that is gone once CE is scaled" in told
    assert words.temperature(make_summary([RIGHT] * 4)) == []


def test_what_rounds_to_0_has_no_sign() -> None:
    assert [words.number(value, 1, sign=True) for value in (0.04, -0.04, 0.0)] == ["0.0", "0.0", "0.0"]


def test_the_overview_counts_tasks(make_summary: Callable[..., Summary]) -> None:
    better, alike = make_summary([RIGHT] * 20), make_summary([WRONG] * 20)
    both = Summary(better.settings, better.compared, [better.tasks[0], alike.tasks[0]], better.environment)
    assert words.overview(both)[0] == (
        "accuracy: CAREF is better than CE on 1 of 2 tasks, worse on 0, not distinguishable on 1"
    )
    assert words.overview(alike)[0] == "accuracy: CAREF is not distinguishable from CE on this task"
    scaled = words.overview(better)[3]
    assert scaled.startswith("Brier score, CE with its temperature scaled: CAREF is better than what temper")
    # What the first task lacks is told of the others.
    none = replace(better.tasks[0], differences=[])
    lacking = Summary(better.settings, better.compared, [none, better.tasks[0]], better.environment)
    assert words.overview(lacking) == words.overview(better)


def test_caution_grows_with_comparisons_and_falls_with_splits(make_summary: Callable[..., Summary]) -> None:
    told = words.caution(make_summary([RIGHT] * 4))
    assert told[0].startswith("these are 3 comparisons, each at the level of 5 %")
    assert "0.1 of them" in told[0] or "0.2 of them" in told[0]
    assert told[1].startswith("there are 2 splits: the interval is too narrow")
    assert words.caution(make_summary([RIGHT] * 20))[0].startswith("these are 5 comparisons")
