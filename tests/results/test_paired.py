from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caref.errors import CarefError, DataError
from caref.generation.prediction import Prediction
from caref.metrics import METRICS
from caref.results import paired
from caref.results.paired import METRIC_OF, PairedDifference, compare_runs, paired_difference
from caref.results.result import RunResult
from caref.results.run_directory import RunDirectory

Split = Mapping[str, float | None]
Make = Callable[..., RunResult]


def against_zero(differences: Mapping[int, Split]) -> PairedDifference:
    """Values whose difference from 0 is given."""
    zeros = {seed: dict.fromkeys(split, 0.0) for seed, split in differences.items()}
    return paired_difference(zeros, differences)


def noise(
    generator: np.random.Generator, *, splits: int = 3, size: int = 40, pool: int = 60, between: float = 0.0
) -> dict[int, dict[str, float]]:
    """Differences without an effect: each example's own part, each split's and each pair's."""
    own = generator.normal(size=pool)
    found = {}
    for seed in range(splits):
        shift = between * generator.normal()
        drawn = generator.choice(pool, size, replace=False)
        found[seed] = {str(e): float(own[e] + 0.5 * generator.normal() + shift) for e in drawn}
    return found


def test_known_numbers() -> None:
    first: dict[int, Split] = {
        1: {"a": 0.0, "b": 1.0, "c": None},
        2: {"a": 0.25, "d": 1.0, "e": 1.0, "f": 1.0},
    }
    second: dict[int, Split] = {
        1: {"a": 1.0, "b": 1.0, "c": 1.0},
        2: {"a": 1.25, "d": 1.0, "e": 0.0, "f": None},
    }
    result = paired_difference(first, second)
    # Split 1: (1 + 0) / 2; split 2: (1 + 0 - 1) / 3.
    assert result.mean == pytest.approx((0.5 + 0.0) / 2)
    assert (result.splits, result.pairs, result.left_out) == (2, 5, 2)
    back = paired_difference(second, first)
    assert (back.mean, back.p_value) == (-result.mean, result.p_value)
    assert (back.low, back.high) == pytest.approx((-result.high, -result.low))


def test_splits_weigh_alike_whatever_their_size() -> None:
    result = against_zero({1: {"a": 1.0}, 2: {str(k): 0.0 for k in range(9)}})
    assert result.mean == 0.5


def test_the_p_value_is_that_of_all_flips() -> None:
    differences = {1: {"a": 3.0, "b": 1.0, "c": -0.5, "d": 2.0, "e": 0.25, "f": 1.0}}
    flips = itertools.product((-1, 1), repeat=6)
    numbers = list(differences[1].values())
    sums = [abs(sum(s * d for s, d in zip(signs, numbers, strict=True))) for signs in flips]
    exact = sum(each >= abs(sum(numbers)) for each in sums) / len(sums)
    assert against_zero(differences).p_value == pytest.approx(exact, abs=0.01)


def test_an_examples_differences_flip_together() -> None:
    """One example in ten splits: two outcomes, equally extreme. Apart they would give about 0.002."""
    assert against_zero({seed: {"a": 1.0} for seed in range(10)}).p_value == 1.0
    # Two examples, each in five splits: both signs alike in half of all cases.
    assert against_zero({s: {"a": 1.0, "b": 1.0} for s in range(5)}).p_value == pytest.approx(0.5, abs=0.02)


def test_an_example_counts_by_the_size_of_its_split() -> None:
    # 1, 1/2 and -1/2: of the eight sums only the two that cancel to 0 are below 1.
    result = against_zero({1: {"a": 1.0}, 2: {"b": 1.0, "c": -1.0}})
    assert result.p_value == pytest.approx(0.75, abs=0.02)


def test_one_example_per_split_flips_alone() -> None:
    apart = against_zero({seed: {str(seed): 1.0} for seed in range(10)})
    assert apart.p_value == pytest.approx(2 / 2**10, abs=0.0015)


def test_equal_settings_do_not_differ() -> None:
    scores = noise(np.random.default_rng(1))
    result = paired_difference(scores, scores)
    assert (result.mean, result.low, result.high, result.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_a_clear_difference_is_seen() -> None:
    generator = np.random.default_rng(2)
    result = against_zero({s: {e: d + 2 for e, d in split.items()} for s, split in noise(generator).items()})
    assert result.p_value == pytest.approx(1 / 10_001)
    assert 1 < result.low < result.mean < result.high < 3


def test_sums_that_rounding_alone_sets_apart_are_equal() -> None:
    """0.1 + 0.2 + 0.3 - 0.4 is a little more than 0.4 - 0.3 + 0.2 - 0.1; in whole numbers it is not."""
    whole = {"a": 1.0, "b": 2.0, "c": 3.0, "d": -4.0}
    tenths = {example: difference / 10 for example, difference in whole.items()}
    assert against_zero({1: tenths}).p_value == against_zero({1: whole}).p_value


def test_the_order_does_not_matter() -> None:
    scores = noise(np.random.default_rng(3))
    result = against_zero(scores)
    shuffled: dict[int, dict[str, float]] = {}
    for seed in reversed(scores):
        ids = random.Random(seed).sample(sorted(scores[seed]), len(scores[seed]))
        shuffled[seed] = {each: scores[seed][each] for each in ids}
    assert list(shuffled[0]) != list(scores[0])
    assert against_zero(shuffled) == result


def test_without_a_difference_p_values_are_about_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "DRAWS", 1)
    monkeypatch.setattr(paired, "FLIPS", 300)
    generator = np.random.default_rng(4)
    p_values = [against_zero(noise(generator, pool=45, size=30)).p_value for _ in range(200)]
    for level in (0.1, 0.25, 0.5, 0.75):
        deviation = (level * (1 - level) / 200) ** 0.5
        assert np.mean(np.array(p_values) <= level) == pytest.approx(level, abs=3 * deviation)


def test_the_interval_covers_with_enough_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "DRAWS", 300)
    monkeypatch.setattr(paired, "FLIPS", 1)
    generator = np.random.default_rng(5)
    results = [against_zero(noise(generator, splits=10, size=20, pool=2000, between=1.0)) for _ in range(100)]
    # 0.95, less what ten splits and 300 draws cost.
    assert 0.85 <= np.mean([result.low <= 0 <= result.high for result in results]) < 1


def test_the_interval_knows_that_splits_differ() -> None:
    """Each split all of one value: only drawing splits can tell that the mean is uncertain."""
    result = against_zero({s: {str(k): float(s) for k in range(50)} for s in range(-2, 3)})
    assert result.mean == 0
    # The bootstrap mean of five numbers of variance 2 has the deviation sqrt(2 / 5).
    assert (result.low, result.high) == pytest.approx((-1.96 * 0.4**0.5, 1.96 * 0.4**0.5), abs=0.15)


def test_the_interval_of_one_split_is_that_of_its_examples() -> None:
    result = against_zero({1: {str(k): float(k % 2) for k in range(100)}})
    assert (result.low, result.high) == pytest.approx((0.5 - 1.96 * 0.05, 0.5 + 1.96 * 0.05), abs=0.015)


def test_a_split_without_a_pair_does_not_count() -> None:
    result = paired_difference({1: {"a": 0.0}, 2: {"b": None}}, {1: {"a": 1.0}, 2: {"b": 1.0}})
    assert (result.mean, result.splits, result.pairs, result.left_out) == (1.0, 1, 1, 1)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (
            {1: {}, 3: {}, 4: {}},
            {1: {}, 2: {}},
            "the splits differ: 2 in the first alone (seed 3, 4) and 1 in the second alone (seed 2); "
            "compare the same ones",
        ),
        (
            {7: {"a": 1.0}},
            {7: dict.fromkeys("abcde", 1.0)},
            "the examples of seed 7 differ: 4 in the second alone (id 'b', 'c', 'd' ...); "
            "compare the same ones",
        ),
        ({}, {}, "there is no split to compare; pass at least one run of each setting"),
        (
            {1: {"a": None}},
            {1: {"a": 1.0}},
            "no example has a value in both settings; there is nothing to compare",
        ),
        ({1: {"a": 0.0}}, {1: {"a": float("nan")}}, "seed 1, id 'a': 0.0 and nan have no finite difference"),
    ],
)
def test_what_cannot_be_paired(first: dict[int, Split], second: dict[int, Split], told: str) -> None:
    with pytest.raises(CarefError) as caught:
        paired_difference(first, second)
    assert str(caught.value) == told


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


def test_it_is_known_whose_every_per_example_value_is(prediction: Prediction) -> None:
    encoder = str(Path(__file__).parents[1] / "metrics" / "golden" / "tiny-roberta")
    settings: dict[str, Any] = {"nbert": {"encoder": encoder, "layer": 3, "device": "cpu"}}
    for name in METRICS.names():
        result = METRICS.get(name)(**settings.get(name, {})).compute([prediction])
        assert result.per_example
        for column in result.per_example:
            assert column in result.values or METRIC_OF[column] == name


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
