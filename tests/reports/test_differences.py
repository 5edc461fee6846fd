"""Which differences a report tells, of which columns, and what it says of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from caref.errors import CarefError
from caref.reports.differences import PAIRED, differences
from caref.results.result import MetricRecord
from caref.results.setting import ScoredSplit
from caref.statistics.paired import paired_difference

Columns = dict[str, list[float | None]]

SCALED = "Brier score, CE with its temperature scaled"
BOTH = "Brier score, both with their temperatures scaled"


def split(columns: Columns, **metrics: MetricRecord) -> ScoredSplit:
    size = len(next(iter(columns.values())))
    scores = {str(row): {name: column[row] for name, column in columns.items()} for row in range(size)}
    return ScoredSplit(Path("run"), "small", "sum", scores, metrics)


def names(first: list[Columns], second: list[Columns]) -> list[str]:
    sides = [dict(enumerate(map(split, side))) for side in (first, second)]
    return [each.paired.name for each in differences(*sides, "CE")]


def test_each_setting_is_read_by_its_own_column() -> None:
    first: Columns = {"brier": [0.5, 0.6, 0.9], "brier_scaled": [0.4, 0.1, 0.5]}
    second: Columns = {"brier": [0.3, 0.2, 0.8], "brier_scaled": [0.2, 0.1, 0.0]}
    found = {each.paired.name: each.of for each in differences({1: split(first)}, {1: split(second)}, "CE")}
    assert list(found) == ["Brier score", SCALED, BOTH]
    for name, before, after in (
        ("Brier score", "brier", "brier"),
        (SCALED, "brier_scaled", "brier"),
        (BOTH, "brier_scaled", "brier_scaled"),
    ):
        columns = (dict(zip("012", side, strict=True)) for side in (first[before], second[after]))
        assert found[name] == paired_difference(*({1: column} for column in columns)), name


def test_a_share_is_in_points() -> None:
    one, other = split({"correct": [0.0, 0.0, 1.0, 1.0]}), split({"correct": [1.0, 0.0, 1.0, 1.0]})
    (found,) = differences({1: one}, {1: other}, "CE")
    assert (found.paired.name, found.of.mean) == ("accuracy", 25.0)


def test_what_no_example_has_in_both_is_left_out() -> None:
    plain: Columns = {"brier": [0.5, 0.6]}
    undefined, defined, one = (
        plain | {"brier_scaled": scaled} for scaled in ([None, None], [0.1, 0.2], [None, 0.2])
    )
    assert names([defined], [plain]) == ["Brier score", SCALED]
    assert names([plain], [defined]) == ["Brier score"]
    assert names([undefined], [defined]) == ["Brier score"]
    assert names([defined], [undefined]) == ["Brier score", SCALED]
    assert names([one], [one]) == ["Brier score", SCALED, BOTH]
    # A split that has the column undefined is left out of it; one that lacks it leaves the row out.
    assert names([undefined, defined], [plain, plain]) == ["Brier score", SCALED]
    assert names([plain, defined], [plain, plain]) == ["Brier score"]
    assert names([{"own": [1.0]}], [{"own": [1.0]}]) == []


def test_both_have_to_be_computed_in_the_same_way() -> None:
    columns: Columns = {"brier": [0.5, 0.6], "brier_scaled": [0.1, 0.2]}
    one, other = (
        split(
            columns,
            temperature=MetricRecord(values={"brier_scaled": 0.1}, fingerprint={"temperature_folds": folds}),
        )
        for folds in (5, 10)
    )
    with pytest.raises(CarefError, match="temperature was not computed in the same way: temperature_folds"):
        differences({1: one}, {1: other}, "CE")


def test_a_setting_may_be_called_anything() -> None:
    columns: Columns = {"brier": [0.5, 0.6], "brier_scaled": [0.1, 0.2]}
    found = differences({1: split(columns)}, {1: split(columns)}, "{CE}")
    assert found[1].paired.name == "Brier score, {CE} with its temperature scaled"


def test_a_difference_of_one_draw_of_training_examples_is_none_of_the_settings() -> None:
    """Six splits, of which one alone differs, by much: clear over examples, not over splits."""
    same: Columns = {"correct": [0.0] * 30}
    first = {seed: split(same) for seed in range(6)}
    second = {**first, 3: split({"correct": [1.0] * 30})}
    few = differences({seed: first[seed] for seed in (3, 4)}, {seed: second[seed] for seed in (3, 4)}, "CE")
    (found,) = differences(first, second, "CE")
    assert few[0].of.p_value < 0.001 and found.of.p_value < 0.001
    assert found.verdict == "not distinguishable"


def test_what_is_left_by_rounding_is_no_difference() -> None:
    tiny: Columns = {"brier": [1e-96 * row for row in range(1, 41)]}
    (found,) = differences({1: split({"brier": [0.0] * 40})}, {1: split(tiny)}, "CE")
    assert found.of.low > 0 and found.verdict == "not distinguishable"


def test_no_two_rows_have_a_name_in_common() -> None:
    assert len({paired.name for paired in PAIRED}) == len(PAIRED)
