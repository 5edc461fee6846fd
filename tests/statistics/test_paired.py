from __future__ import annotations

import itertools
import random
import time
from collections.abc import Mapping

import numpy as np
import pytest

from caref.errors import CarefError
from caref.statistics import paired
from caref.statistics.paired import PairedDifference, pair, paired_difference

Split = Mapping[str, float | None]


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


def test_pairs_tell_means_and_which_is_higher() -> None:
    pairs = pair(
        {1: {"a": 1.0, "b": 2.0, "c": None}, 2: {"a": 4.0}},
        {1: {"a": 3.0, "b": 2.0, "c": 1.0}, 2: {"a": 0.0}},
    )
    assert pairs.means == (2.75, 1.25)
    assert pairs.higher_and_lower == (1, 1)
    assert pairs.split_differences.tolist() == [1.0, -4.0]
    assert pairs.left_out == 1


def test_splits_may_be_known_by_seeds_and_names() -> None:
    scores = {"one": {"a": 1.0}, 10: {"a": 2.0}, 9: {"a": 3.0}}
    pairs = pair(scores, scores)
    assert [float(split[0]) for split in pairs.first] == [3.0, 2.0, 1.0]
    with pytest.raises(CarefError, match=r"1 in the first alone \(named 'one'\)"):
        pair(scores, {10: {"a": 2.0}, 9: {"a": 3.0}})


def test_without_a_pair_there_is_nothing_to_say() -> None:
    pairs = pair({1: {"a": None}}, {1: {"a": 1.0}})
    assert (pairs.ids, pairs.left_out, pairs.higher_and_lower) == ((), 1, (0, 0))


def test_another_unit() -> None:
    result = against_zero({1: {str(k): float(k) for k in range(9)}})
    scaled = result.scaled(100)
    assert (scaled.mean, scaled.low, scaled.high) == (100 * result.mean, 100 * result.low, 100 * result.high)
    assert (scaled.p_value, scaled.pairs) == (result.p_value, result.pairs)


def test_sixty_splits_take_a_second_or_two() -> None:
    generator = np.random.default_rng(6)
    scores = noise(generator, splits=60, size=350, pool=900)
    begin = time.perf_counter()
    against_zero(scores)
    assert time.perf_counter() - begin < 5
