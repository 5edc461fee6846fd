from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caref.errors import CarefError, DataError
from caref.generation.prediction import Prediction
from caref.results.paired import compare_runs
from caref.results.result import RunResult
from caref.results.run_directory import RunDirectory
from caref.statistics.paired import paired_difference

Make = Callable[..., RunResult]


class Runs:
    """Writes complete runs with per-example scores."""

    def __init__(self, root: Path, make_result: Make, prediction: Prediction) -> None:
        self.root, self.make_result, self.prediction = root, make_result, prediction

    def __call__(
        self, name: str, columns: dict[str, list[float | None]], ids: str = "abcd", **changes: Any
    ) -> RunDirectory:
        run = RunDirectory(self.root / name)
        run.start({})
        run.write_scores([self.prediction.model_copy(update={"id": each}) for each in ids], columns)
        run.finish(self.make_result(**changes), {})
        return run


@pytest.fixture
def write(tmp_path: Path, make_result: Make, prediction: Prediction) -> Runs:
    return Runs(tmp_path, make_result, prediction)


def test_runs_are_compared_by_seed_whatever_their_order(write: Runs) -> None:
    first = [
        write(f"a{s}", {"correct": [0.0, 1.0, None, 1.0]}, seed=s, split_checksum=str(s)) for s in (1, 2)
    ]
    second = [write(f"b{s}", {"correct": [1.0] * 4}, "badc", seed=s, split_checksum=str(s)) for s in (2, 1)]
    result = compare_runs(first, second, "correct")
    assert result == paired_difference(
        {s: {"a": 0.0, "b": 1.0, "c": None, "d": 1.0} for s in (1, 2)},
        {s: dict.fromkeys("abcd", 1.0) for s in (1, 2)},
    )
    assert (result.mean, result.splits, result.pairs, result.left_out) == (pytest.approx(1 / 3), 2, 6, 2)
    assert compare_runs(first, first, "correct").p_value == 1.0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"split_checksum": "01"}, r"a and .*b were run on different splits; compare runs of the same task"),
        ({"task": "ecqa"}, r"a and .*b were run on different tasks; "),
        (
            {"seed": 5},
            r"the splits differ: 1 in the first alone \(seed 1\) and 1 in the second alone \(seed 5\)",
        ),
    ],
)
def test_runs_on_other_splits_are_refused(write: Runs, changes: dict[str, Any], told: str) -> None:
    first, second = write("a", {"correct": [1.0] * 4}), write("b", {"correct": [1.0] * 4}, **changes)
    with pytest.raises(CarefError, match=told):
        compare_runs([first], [second], "correct")


def test_two_runs_of_a_seed_are_refused(write: Runs) -> None:
    runs = [write(name, {"correct": [1.0] * 4}) for name in "ab"]
    with pytest.raises(
        CarefError, match=r"two of the second runs have seed 1: .*a and .*b; pass the runs of one"
    ):
        compare_runs(runs[:1], runs, "correct")


def test_a_value_that_is_not_there(write: Runs) -> None:
    first, second = write("a", {"correct": [1.0] * 4}), write("b", {"correct": [1.0] * 4, "brier": [0.0] * 4})
    with pytest.raises(DataError, match=r"a/scores\.jsonl has no value 'brier'; there are: correct$"):
        compare_runs([first], [second], "brier")


def measured(encoder: str) -> dict[str, Any]:
    return {
        "accuracy": {"values": {"accuracy": 1.0}},
        "nbert": {"values": {"nbert": 1.0}, "fingerprint": {"encoder": encoder, "layer": 3}},
    }


@pytest.mark.parametrize(
    ("value", "refused"), [("nbert", True), ("bertscore_f1", True), ("correct", False), ("own", True)]
)
def test_a_value_has_to_be_computed_in_the_same_way(write: Runs, value: str, refused: bool) -> None:
    first, second = (
        write(name, {value: [1.0] * 4}, metrics=measured(encoder))
        for name, encoder in (("a", "x"), ("b", "y"))
    )
    if not refused:
        assert compare_runs([first], [second], value).mean == 0
        return
    told = r"nbert was not computed in the same way: encoder is 'x' in .*a and 'y' in .*b$"
    with pytest.raises(CarefError, match=told):
        compare_runs([first], [second], value)


def test_a_metric_of_one_side_alone_is_no_obstacle(write: Runs) -> None:
    first = write("a", {"own": [1.0] * 4}, metrics=measured("x"))
    second = write("b", {"own": [1.0] * 4})
    assert compare_runs([first], [second], "own").pairs == 4


def test_an_unfinished_run_is_refused(write: Runs) -> None:
    first, second = write("a", {"correct": [1.0] * 4}), write("b", {"correct": [1.0] * 4})
    second.result_path.unlink()
    with pytest.raises(DataError, match="b holds no complete run"):
        compare_runs([first], [second], "correct")


def test_the_scores_are_those_that_were_written(write: Runs) -> None:
    run = write("a", {"correct": [0.0, 1.0, None, 1.0]}, ids="a\u2028bc")
    assert run.read_scores() == {"a": {"correct": 0.0}, "\u2028": {"correct": 1.0}} | {
        "b": {"correct": None},
        "c": {"correct": 1.0},
    }


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "not an example's scores: Invalid JSON"),
        ("[]", "not an example's scores"),
        ('{"correct": 1.0}', "not an example's scores: Field required"),
        ('{"id": "x", "correct": "high"}', "not an example's scores: Input should be a valid number"),
        ('{"id": "x", "correct": NaN}', "not an example's scores: Input should be a finite number"),
        ('{"id": "a", "correct": 1.0}', "the id 'a' is there twice"),
    ],
)
def test_scores_that_cannot_be_read(write: Runs, line: str, told: str) -> None:
    run = write("a", {"correct": [1.0] * 4})
    with run.scores_path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match=rf"scores\.jsonl:5: {told}"):
        run.read_scores()


def test_scores_that_are_not_there(write: Runs) -> None:
    run = write("a", {"correct": [1.0] * 4})
    assert json.loads(run.scores_path.read_text().splitlines()[0]) == {"id": "a", "correct": 1.0}
    run.scores_path.unlink()
    with pytest.raises(DataError, match=r"cannot read .*scores\.jsonl: No such file"):
        run.read_scores()
    run.result_path.unlink()
    with pytest.raises(DataError, match="holds no complete run"):
        run.read_scores()
