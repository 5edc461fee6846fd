from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caref.errors import CarefError, DataError
from caref.metrics.calibration.binned import BINS, Bin
from caref.reports.summary import Said, Summary, summarise
from caref.results.run_directory import RunDirectory

MakeRun = Callable[..., RunDirectory]
MakeSummary = Callable[..., Summary]

RIGHT = ("yes because it is so", 0.75)
WRONG = ("no because it is not", 0.25)
BROKEN = ("mumble  mumble\n", 0.5)


@pytest.fixture
def runs(make_run: MakeRun) -> dict[str, list[RunDirectory]]:
    """Two splits of four questions: CE has 1 and 3 right, CAREF 3 and 4."""
    return {
        "CE": [
            make_run("ce", [RIGHT, WRONG, WRONG, BROKEN], seed=7),
            make_run("ce", [RIGHT, RIGHT, RIGHT, BROKEN], seed=3),
        ],
        "CAREF": [
            make_run("caref", [RIGHT, RIGHT, RIGHT, BROKEN], seed=7, peak_mib={"load": 300.0}),
            make_run("caref", [RIGHT, RIGHT, RIGHT, RIGHT], seed=3, caref="0.2.0"),
        ],
    }


def test_means_and_deviations_over_splits(runs: dict[str, list[RunDirectory]]) -> None:
    (task,) = summarise(runs, compared=("CE", "CAREF")).tasks
    assert (task.task, task.seeds, task.shots, task.evaluated) == ("small", [7, 3], 48, 4)
    assert task.chance == 50

    accuracy = task.values["CE"]["accuracy"]
    assert accuracy.per_split == [25.0, 75.0]
    assert (accuracy.mean, accuracy.std) == (50.0, pytest.approx(35.3553, abs=1e-4))
    assert task.values["CE"]["broken"].per_split == [25.0, 25.0]
    # The likeliest candidate is no where it is wrong, and yes, the first of equal ones, where it is broken.
    assert task.values["CE"]["candidate_accuracy"].per_split == [50.0, 100.0]
    # Three at 0.75 of which one is right, one at 0.5 that is right: (|1 - 2.25| + |1 - 0.5|) / 4.
    assert task.values["CE"]["calibration_error"].per_split[0] == pytest.approx(0.4375)
    assert 0 < (task.values["CE"]["calibration_error_95"].mean or 0) < 1
    # -ln of the gold answer's 0.75, 0.25, 0.25 and 0.5.
    assert task.values["CE"]["nll"].per_split[0] == pytest.approx(-math.log(0.75 * 0.25 * 0.25 * 0.5) / 4)
    assert list(task.values["CE"]) == [
        "accuracy", "broken", "candidate_accuracy", "nll", "calibration_error", "calibration_error_95",
    ]  # fmt: skip


def test_differences_are_paired_and_in_their_unit(runs: dict[str, list[RunDirectory]]) -> None:
    (task,) = summarise(runs, compared=("CE", "CAREF")).tasks
    by_value = {difference.paired.value: difference for difference in task.differences}
    assert list(by_value) == ["correct", "candidate_correct", "brier"]  # no nBERT: it was not computed
    # 2 of 4 more right on one split, 1 of 4 on the other.
    assert by_value["correct"].of.mean == pytest.approx(37.5)
    assert (by_value["correct"].of.splits, by_value["correct"].of.pairs) == (2, 8)
    assert by_value["candidate_correct"].of.mean == pytest.approx(25.0)
    # Wrong to right: 2 * 0.75^2 to 2 * 0.25^2, a difference of -1, twice of four; then 0.125 - 0.5, once.
    assert by_value["brier"].of.mean == pytest.approx((-2 / 4 - 0.375 / 4) / 2)


@pytest.mark.parametrize(
    ("ce", "caref", "accuracy", "brier"),
    [
        (WRONG, RIGHT, "better", "better"),
        (RIGHT, WRONG, "worse", "worse"),
        (RIGHT, RIGHT, "not distinguishable", "not distinguishable"),
    ],
)
def test_verdicts(make_summary: MakeSummary, ce: Any, caref: Any, accuracy: str, brier: str) -> None:
    (task,) = make_summary([caref] * 20, [ce] * 20).tasks
    verdicts = {difference.paired.name: difference.verdict for difference in task.differences}
    assert (verdicts["accuracy"], verdicts["Brier score"]) == (accuracy, brier)


def test_what_temperature_scaling_reaches_alone_is_no_gain(make_summary: MakeSummary) -> None:
    """CE is right with 0.75, CAREF with 0.9: a temperature near 0 makes a certainty of either."""
    (task,) = make_summary([("yes because it is so", 0.9)] * 20, [RIGHT] * 20).tasks
    found = {each.paired.name: (each.of.mean, each.verdict) for each in task.differences}
    assert list(found)[2:] == [
        "Brier score",
        "Brier score, CE with its temperature scaled",
        "Brier score, both with their temperatures scaled",
    ]
    plain, first, both = list(found.values())[2:]
    assert plain == (pytest.approx(2 * 0.1**2 - 2 * 0.25**2), "better")
    assert first == (pytest.approx(2 * 0.1**2), "worse")
    assert both[0] == pytest.approx(0.0)


def test_an_interval_without_0_is_not_enough(make_summary: MakeSummary) -> None:
    """Three of three questions are better on each split: the interval says 100, the test p = 0.25."""
    (task,) = make_summary([RIGHT] * 3).tasks
    (accuracy, *_) = task.differences
    assert accuracy.of.low > 0
    assert accuracy.of.p_value > 0.05
    assert accuracy.verdict == "not distinguishable"


def test_bins_are_those_of_the_calibration_error(runs: dict[str, list[RunDirectory]]) -> None:
    (task,) = summarise(runs, compared=("CE", "CAREF")).tasks
    # 0.5 is in the eighth of 15 bins, 0.75 in the twelfth.
    assert task.reliability["CE"] == [
        Bin(7, pytest.approx(7 / 15), pytest.approx(8 / 15), 2, 0.5, 1.0),
        Bin(11, pytest.approx(11 / 15), pytest.approx(12 / 15), 6, 0.75, pytest.approx(4 / 6)),
    ]


def test_the_figure_and_the_number_agree(make_run: MakeRun) -> None:
    """The gaps of the bins that are drawn add up to the calibration error of the run."""
    answers = [("yes because it is so", yes) for yes in (0.03, 0.2, 0.4, 0.6, 2 / 3, 0.7, 0.8, 0.8, 1.0)]
    run = make_run("ce", answers)
    (task,) = summarise({"CE": [run], "CAREF": [run]}, compared=("CE", "CAREF")).tasks
    bins = task.reliability["CE"]
    gaps = sum(each.count * abs(each.right - each.confidence) for each in bins) / len(answers)
    assert gaps == pytest.approx(task.values["CE"]["calibration_error"].mean)
    assert all(each.place < BINS for each in bins)


def test_the_difference_in_nbert_has_parts(make_run: MakeRun) -> None:
    runs = {
        "CE": [make_run("ce", [RIGHT, RIGHT, WRONG, WRONG], nbert=[80.0, 60.0, 0.0, 0.0])],
        "CAREF": [make_run("caref", [RIGHT] * 4, nbert=[90.0] * 4)],
    }
    (task,) = summarise(runs, compared=("CE", "CAREF")).tasks
    assert task.nbert_parts is not None
    # F1 given right 0.7 and 0.9, accuracy 50 and 100: 50 * 0.8 and 0.2 * 75.
    parts = task.nbert_parts.parts
    assert parts.difference == pytest.approx(55.0)
    assert parts.accuracy_part.value == pytest.approx(40.0)
    assert parts.explanation_part.value == pytest.approx(15.0)


def test_without_nbert_there_are_no_parts(runs: dict[str, list[RunDirectory]]) -> None:
    assert summarise(runs, compared=("CE", "CAREF")).tasks[0].nbert_parts is None


def test_examples_are_the_first_of_the_first_split(runs: dict[str, list[RunDirectory]]) -> None:
    (task,) = summarise(runs, compared=("CE", "CAREF"), examples=2).tasks
    first, second = task.examples
    assert (first.input, first.answer, first.explanation) == ("question 1", "yes", "it is so")
    assert second.said == {
        "CE": Said("no because it is not", right=False, broken=False),
        "CAREF": Said("yes because it is so", right=True, broken=False),
    }
    (task,) = summarise(runs, compared=("CE", "CAREF"), examples=9).tasks
    assert task.examples[3].said["CE"] == Said("mumble mumble", right=False, broken=True)


def test_what_it_took(runs: dict[str, list[RunDirectory]]) -> None:
    environment = summarise(runs, compared=("CE", "CAREF")).environment
    assert (environment["runs"], environment["seconds"], environment["peak_mib"]) == (4, 10.0, 300.0)
    assert (environment["caref"], environment["commit"]) == ("0.1.0, 0.2.0", "")
    assert environment["packages"] == {"torch": "2.13.0", "numpy": "2.0.0"}


def test_the_file_is_plain_data_and_the_same_again(
    runs: dict[str, list[RunDirectory]], tmp_path: Path
) -> None:
    for name in ("one.json", "two.json"):
        summarise(runs, compared=("CE", "CAREF")).write(tmp_path / name)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    written = json.loads((tmp_path / "one.json").read_text(encoding="utf-8"))
    assert written["compared"] == ["CE", "CAREF"]
    accuracy = written["tasks"][0]["values"]["CE"]["accuracy"]
    assert accuracy == {"mean": 50.0, "std": pytest.approx(35.36, abs=0.01), "per_split": [25.0, 75.0]}


def test_what_cannot_be_put_beside_each_other(make_run: MakeRun, tmp_path: Path) -> None:
    one, other = make_run("ce", [RIGHT], seed=1), make_run("caref", [RIGHT], seed=2)
    with pytest.raises(CarefError, match="CE and CAREF were not run on the same tasks and splits"):
        summarise({"CE": [one], "CAREF": [other]}, compared=("CE", "CAREF"))
    with pytest.raises(CarefError, match="are the same split of one setting"):
        summarise({"CE": [one, one], "CAREF": [other]}, compared=("CE", "CAREF"))
    with pytest.raises(DataError, match="holds no complete run"):
        summarise({"CE": [RunDirectory(tmp_path)], "CAREF": [other]}, compared=("CE", "CAREF"))
    (one.path / "environment.json").write_text("{")
    with pytest.raises(DataError, match=r"cannot read .*environment\.json"):
        summarise({"CE": [one], "CAREF": [one]}, compared=("CE", "CAREF"))
