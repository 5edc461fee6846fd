from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caref.errors import CarefError, DataError
from caref.results.comparison import Comparison, chosen_values, compare, verdict
from caref.results.factors import decomposed
from caref.results.ranking import rankings
from caref.results.result import MetricRecord
from caref.results.setting import ScoredSplit, Setting
from caref.results.values import value_named, with_temperature
from caref.statistics.number import Number
from caref.statistics.paired import PairedDifference, paired_difference
from caref.statistics.power import splits_needed


def setting(
    name: str,
    splits: dict[Any, dict[str, list[float | None]]],
    task: str = "comve",
    **metrics: MetricRecord,
) -> Setting:
    """A setting with these columns on each split."""
    scored = {
        key: ScoredSplit(
            path=Path(name) / str(key),
            task=task,
            checksum=str(key),
            scores={
                str(row): {column: values[row] for column, values in columns.items()}
                for row in range(len(next(iter(columns.values()))))
            },
            metrics=metrics,
        )
        for key, columns in splits.items()
    }
    return Setting(name, {task: scored})


def drawn(name: str, chance: float, *, seed: int = 0, splits: int = 8, size: int = 60) -> Setting:
    """A setting whose answers are right with this chance and whose explanations score about 90."""
    generator = np.random.default_rng(seed)
    found: dict[Any, dict[str, list[float | None]]] = {}
    for key in range(splits):
        right = (generator.random(size) < chance).astype(float)
        nbert = np.where(right > 0, 90 + generator.normal(size=size), 0.0)
        found[key] = {"correct": right.tolist(), "nbert": nbert.tolist()}
    return setting(name, found)


def by_name(found: list[Comparison]) -> dict[tuple[str, str], Comparison]:
    return {(each.value.name, each.setting): each for each in found}


def test_a_planted_difference_is_found_and_none_is_not() -> None:
    reference, better, same = drawn("a", 0.5), drawn("b", 0.7, seed=1), drawn("c", 0.5, seed=2)
    found = by_name(compare(reference, [better, same], chosen_values([reference, better, same])))
    assert {key: each.verdict for key, each in found.items()} == {
        ("accuracy", "b"): "better",
        ("accuracy", "c"): "not distinguishable",
        ("nbert", "b"): "better",
        ("nbert", "c"): "not distinguishable",
    }
    each = found["accuracy", "b"]
    assert each.difference is not None and each.means is not None
    assert each.difference.mean == pytest.approx(each.means[1] - each.means[0])
    assert 0 < each.difference.low < 20 < each.difference.high < 40
    assert each.difference.p_value < 0.001
    assert each.p_splits.value == 2 / 2**8
    assert each.higher > each.lower


def test_the_numbers_are_those_of_the_pairs() -> None:
    reference, other = drawn("a", 0.5), drawn("b", 0.6, seed=1)
    (each,) = compare(reference, [other], [value_named("accuracy")])
    sides = [
        {key: split.column("correct") for key, split in one.tasks["comve"].items()}
        for one in (reference, other)
    ]
    assert each.difference == paired_difference(*sides).scaled(100)
    gaps = [
        100 * np.mean([(after[e] or 0) - (before[e] or 0) for e in before])
        for before, after in zip(sides[0].values(), sides[1].values(), strict=True)
    ]
    assert each.effect.value == pytest.approx(np.mean(gaps) / np.std(gaps, ddof=1))
    assert each.needed == splits_needed(1.0, Number(float(np.std(gaps, ddof=1))))


def test_holm_counts_the_settings_of_a_value_on_a_task() -> None:
    reference, others = drawn("a", 0.5), [drawn(name, 0.62, seed=i + 1) for i, name in enumerate("bcd")]
    found = compare(reference, others, [value_named("accuracy")])
    plain = [each.difference.p_value for each in found if each.difference]
    adjusted = [each.p_holm for each in found]
    assert min(p for p in adjusted if p is not None) == pytest.approx(3 * min(plain))
    (alone,) = compare(reference, others[:1], [value_named("accuracy")])
    assert alone.difference is not None
    assert alone.p_holm == alone.difference.p_value


@pytest.mark.parametrize(
    ("low", "high", "p", "p_splits", "told"),
    [
        (0.1, 1.0, 0.049, 0.049, "better"),
        (-1.0, -0.1, 0.049, 0.049, "worse"),
        (0.1, 1.0, 0.049, None, "better"),  # too few splits for a p over them
        (0.1, 1.0, 0.05, 0.001, "not distinguishable"),
        (0.1, 1.0, 0.001, 0.05, "not distinguishable"),
        (-0.1, 1.0, 0.001, 0.001, "not distinguishable"),
        (0.0, 1.0, 0.001, 0.001, "not distinguishable"),
    ],
)
def test_a_difference_needs_interval_and_both_p(
    low: float, high: float, p: float, p_splits: float | None, told: str
) -> None:
    difference = PairedDifference((low + high) / 2, low, high, 0.0001, 20, 900, 0)
    assert verdict(difference, p, p_splits, higher_is_better=True) == told
    other = {"better": "worse", "worse": "better"}.get(told, told)
    assert verdict(difference, p, p_splits, higher_is_better=False) == other
    neither = {"better": "higher", "worse": "lower"}.get(told, told)
    assert verdict(difference, p, p_splits, higher_is_better=None) == neither


def test_one_split_has_no_verdict() -> None:
    reference, other = drawn("a", 0.3, splits=1, size=200), drawn("b", 0.9, seed=1, splits=1, size=200)
    (each,) = compare(reference, [other], [value_named("accuracy")])
    assert each.difference is not None and each.difference.p_value < 0.001
    assert each.verdict == "undefined: one split"
    assert each.p_splits.note == each.effect.note == each.needed.note == "one split"


def test_constant_predictions_do_not_differ() -> None:
    reference, other = drawn("a", 1.1), drawn("b", 1.1, seed=1)
    (each,) = compare(reference, [other], [value_named("accuracy")])
    assert each.verdict == "not distinguishable"
    assert each.difference is not None and (each.difference.mean, each.p_holm) == (0.0, 1.0)
    assert each.effect.note == each.needed.note == "the differences do not vary between splits"


def test_a_value_that_no_example_has_in_both() -> None:
    first = setting("a", {1: {"nll": [None, 1.0]}, 2: {"nll": [None, 1.0]}})
    second = setting("b", {1: {"nll": [1.0, None]}, 2: {"nll": [1.0, None]}})
    (each,) = compare(first, [second], [value_named("nll")])
    assert each.verdict == "undefined: no example has the value in both settings"
    assert (each.difference, each.means, each.p_holm, each.left_out) == (None, None, None, 4)


def test_less_may_be_better_and_of_an_unknown_value_neither() -> None:
    generator = np.random.default_rng(3)
    low, high = (
        setting(
            name,
            {key: {"brier": list(at + 0.1 * generator.random(30)), "own": [at] * 30} for key in range(6)},
        )
        for name, at in (("low", 0.2), ("high", 0.6))
    )
    found = by_name(compare(high, [low], [value_named("brier"), value_named("own")]))
    assert found["brier", "low"].verdict == "better"
    assert found["own", "low"].verdict == "lower"
    means = [
        [math.fsum(row["brier"] or 0 for row in split.scores.values()) / 30 for split in one.splits]
        for one in (low, high)
    ]
    gaps = np.subtract(*means)
    # A point of a value without a unit is a hundredth.
    assert found["brier", "low"].needed == splits_needed(0.01, Number(float(np.std(gaps, ddof=1))))


def test_calibration_is_compared_with_the_reference_after_temperature_scaling() -> None:
    generator = np.random.default_rng(4)

    def with_losses(name: str, plain: float, scaled: float) -> Setting:
        return setting(
            name,
            {
                key: {
                    "nll": list(plain + 0.2 * generator.normal(size=50)),
                    "nll_scaled": list(scaled + 0.2 * generator.normal(size=50)),
                }
                for key in range(8)
            },
        )

    # The other is better calibrated by itself, and no better than the reference once that is scaled.
    ce, caref = with_losses("ce", 1.0, 0.6), with_losses("caref", 0.6, 0.6)
    found = by_name(compare(ce, [caref], chosen_values([ce, caref])))
    assert {name: each.verdict for (name, _), each in found.items()} == {
        "nll": "better",
        "nll_reference_scaled": "not distinguishable",
        "nll_scaled": "not distinguishable",
    }
    each = found["nll_reference_scaled", "caref"]
    sides = (
        {k: s.column(c) for k, s in one.tasks["comve"].items()}
        for one, c in ((ce, "nll_scaled"), (caref, "nll"))
    )
    assert each.difference == paired_difference(*sides)


def test_temperature_needs_its_columns() -> None:
    plain = [setting(name, {1: {"brier": [0.1, 0.2]}}) for name in "ab"]
    assert [each.name for each in chosen_values(plain)] == ["brier"]
    assert [each.name for each in with_temperature(value_named("brier"))] == [
        "brier", "brier_reference_scaled", "brier_scaled",
    ]  # fmt: skip


def test_values_by_name() -> None:
    settings = [drawn("a", 0.5), drawn("b", 0.5)]
    assert [each.name for each in chosen_values(settings)] == ["accuracy", "nbert"]
    assert [each.name for each in chosen_values(settings, ["nbert"])] == ["nbert"]
    with pytest.raises(
        DataError, match=r"no setting has a value 'rouge_l' per example; there are: correct, nbert"
    ):
        chosen_values(settings, ["rouge_l"])


def test_what_cannot_be_compared() -> None:
    first = setting("a", {1: {"correct": [1.0, 0.0]}})
    for other, told in (
        (
            setting("b", {2: {"correct": [1.0, 0.0]}}),
            r"a and b: the splits differ: 1 in the first alone \(seed 1\)",
        ),
        (
            setting("b", {1: {"correct": [1.0]}}),
            r"a and b: the examples of seed 1 differ: 1 in the first alone",
        ),
        (setting("b", {1: {"correct": [1.0]}}, task="ecqa"), r"no other setting shares task and value"),
        (setting("b", {1: {"nbert": [1.0, 1.0]}}), r"no other setting shares task and value"),
    ):
        with pytest.raises(CarefError, match=told):
            compare(first, [other], [value_named("accuracy")])


@pytest.mark.parametrize(("column", "refused"), [("own", True), ("correct", False)])
def test_a_value_has_to_be_computed_in_the_same_way_by_its_metric(column: str, refused: bool) -> None:
    def with_bins(name: str, bins: int) -> Setting:
        records = {
            "mine": MetricRecord(values={"mine": 1.0}, fingerprint={"bins": bins}, columns=("own",)),
            "accuracy": MetricRecord(values={"accuracy": 1.0}, columns=("correct",)),
        }
        return setting(name, {1: {"own": [1.0], "correct": [1.0]}}, **records)

    first, second = with_bins("a", 15), with_bins("b", 20)
    if not refused:
        assert compare(first, [second], [value_named(column)])
        return
    with pytest.raises(CarefError, match=r"a and b: mine was not computed in the same way: bins is 15 in"):
        compare(first, [second], [value_named(column)])


def test_the_metric_that_lists_a_value_is_the_one_that_counts() -> None:
    def with_brier(name: str, bins: int) -> Setting:
        records = {
            "calibration_error": MetricRecord(values={"brier": 0.1}, fingerprint={"bins": bins}),
            "brier": MetricRecord(values={"brier": 0.1}, columns=("brier",)),
        }
        return setting(name, {1: {"brier": [0.1, 0.2]}}, **records)

    assert compare(with_brier("a", 15), [with_brier("b", 20)], [value_named("brier")])


def test_where_a_difference_in_nbert_comes_from() -> None:
    reference, other = drawn("a", 0.5), drawn("b", 0.8, seed=1)
    (each,) = decomposed(reference, [other])
    accuracy, explanation = each.parts.accuracy_part.value, each.parts.explanation_part.value
    assert accuracy is not None and explanation is not None
    assert accuracy + explanation == pytest.approx(each.parts.difference, abs=1e-12)
    (nbert,) = compare(reference, [other], [value_named("nbert")])
    assert nbert.difference is not None
    assert each.parts.difference == pytest.approx(nbert.difference.mean)
    for factors in (each.before, each.after):
        assert factors.f1_given_right == pytest.approx(90, abs=0.5)
        assert factors.accuracy * (factors.f1_given_right or 0) / 100 == pytest.approx(factors.nbert)
    assert each.accuracy_interval is not None and each.accuracy_interval[0] > 0
    assert each.explanation_interval is not None
    assert each.explanation_interval[0] < 0.3 and each.explanation_interval[1] > -0.3


def test_without_a_right_answer_the_parts_are_undefined() -> None:
    (each,) = decomposed(drawn("a", 0.0), [drawn("b", 0.5)])
    assert each.before.f1_given_right is None
    assert each.parts.accuracy_part.value is each.accuracy_interval is None
    assert decomposed(setting("a", {1: {"correct": [1.0]}}), [setting("b", {1: {"correct": [1.0]}})]) == []


def test_settings_are_ranked_over_tasks_and_splits() -> None:
    settings = [
        drawn(name, chance, seed=place)
        for place, (name, chance) in enumerate(zip("abc", (0.3, 0.9, 0.6), strict=True))
    ]
    accuracy, nbert = rankings(settings, chosen_values(settings))
    assert (accuracy.value.name, nbert.value.name) == ("accuracy", "nbert")
    assert accuracy.ranking.mean_ranks == {"b": 1.0, "c": 2.0, "a": 3.0}
    assert accuracy.ranking.blocks == 8
    assert accuracy.ranking.groups == (("b", "c"), ("c", "a"))


def test_a_block_is_of_the_examples_that_all_have() -> None:
    first = setting("a", {1: {"nll": [1.0, None, 3.0]}, 2: {"nll": [None, None, None]}})
    second = setting("b", {1: {"nll": [2.0, 0.0, None]}, 2: {"nll": [1.0, 1.0, 1.0]}})
    third = setting("c", {1: {"nll": [3.0, 0.0, 0.0]}, 2: {"nll": [1.0, 1.0, 1.0]}})
    (found,) = rankings([first, second, third], [value_named("nll")])
    assert found.ranking.blocks == 1
    assert found.ranking.mean_ranks == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert rankings([first, second, third], [value_named("own")]) == []
