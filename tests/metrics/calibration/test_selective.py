"""Ranking by confidence, against torchmetrics, scikit-learn and every order of ties."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchmetrics.functional.classification import binary_auroc

from caref.metrics.calibration.selective import (
    accuracies_at_coverage,
    accuracy_at_coverage,
    area_under_risk,
    areas_under_risk,
    auroc,
    aurocs,
    excess_area_under_risk,
    excess_areas,
    ranked,
    risk_coverage_curve,
)

TIED = st.lists(
    st.tuples(st.sampled_from([0.1, 0.2, 0.5, 1.0]), st.sampled_from([0, 1])), min_size=1, max_size=6
)
OUTCOMES = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0, 1])), min_size=1, max_size=60)
NUMBERS = (auroc, area_under_risk, excess_area_under_risk, accuracy_at_coverage)


def risks(outcomes: list[int]) -> list[float]:
    return [outcomes[:k].count(0) / k for k in range(1, len(outcomes) + 1)]


@settings(max_examples=60, deadline=None)
@given(TIED)
def test_ties_are_every_order_at_once(pairs: list[tuple[float, int]]) -> None:
    f, c = zip(*pairs, strict=True)
    orders = [
        [c for _, c in order]
        for order in itertools.permutations(pairs)
        if all(a >= b for (a, _), (b, _) in itertools.pairwise(order))
    ]
    expected = np.mean([risks(order) for order in orders], axis=0)
    coverage, risk = risk_coverage_curve(f, c)
    assert risk == pytest.approx(expected, abs=1e-12)
    assert coverage == pytest.approx(np.arange(1, len(pairs) + 1) / len(pairs))
    assert area_under_risk(f, c) == pytest.approx(expected.mean(), abs=1e-12)
    best = min(np.mean(risks(list(order))) for order in itertools.permutations(c))
    assert excess_area_under_risk(f, c) == pytest.approx(expected.mean() - best, abs=1e-12)
    taken = int(np.ceil(0.8 * len(pairs) - 1e-9))
    assert accuracy_at_coverage(f, c) == pytest.approx(100 * (1 - expected[taken - 1]), abs=1e-9)


@given(OUTCOMES)
def test_auroc_is_the_share_of_ordered_pairs(pairs: list[tuple[float, int]]) -> None:
    f, c = zip(*pairs, strict=True)
    right, wrong = ([each for each, is_right in pairs if is_right == kind] for kind in (1, 0))
    compared = [(a > b) + 0.5 * (a == b) for a in right for b in wrong]
    assert auroc(f, c) == (pytest.approx(np.mean(compared)) if compared else None)


@pytest.mark.parametrize("decimals", [1, 2, 12])
def test_torchmetrics_agrees(decimals: int) -> None:
    generator = np.random.default_rng(decimals)
    f = generator.random(300).round(decimals)
    c = (generator.random(300) < f).astype(int)
    assert auroc(f, c) == pytest.approx(float(binary_auroc(torch.tensor(f), torch.tensor(c))), abs=1e-6)


@given(OUTCOMES, st.randoms(use_true_random=False))
def test_order_and_scale_do_not_matter(pairs: list[tuple[float, int]], random: Any) -> None:
    for number in NUMBERS:
        value = number(*zip(*pairs, strict=True))
        shuffled = random.sample(pairs, len(pairs))
        assert number(*zip(*shuffled, strict=True)) == pytest.approx(value, abs=1e-12)
    f, c = (np.array(each) for each in zip(*pairs, strict=True))
    ranks = np.unique(f, return_inverse=True)[1] / len(pairs)
    assert [number(ranks, c) for number in NUMBERS] == [number(f, c) for number in NUMBERS]


def test_closed_forms() -> None:
    f, best, worst = [0.9, 0.8, 0.7, 0.6, 0.5], [1, 1, 1, 1, 0], [0, 1, 1, 1, 1]
    assert (auroc(f, best), auroc(f, worst), auroc([0.5] * 5, best)) == (1, 0, 0.5)
    assert area_under_risk(f, best) == pytest.approx(1 / 25)
    assert excess_area_under_risk(f, best) == pytest.approx(0, abs=1e-12)
    assert area_under_risk(f, worst) == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 5)
    assert (accuracy_at_coverage(f, best), accuracy_at_coverage(f, worst)) == (100, 75)
    # A constant predictor has the overall risk at every coverage.
    assert risk_coverage_curve([0.5] * 5, worst)[1] == pytest.approx([0.2] * 5)
    for outcomes in ([1, 1], [0, 0]):
        assert auroc([0.9, 0.1], outcomes) is None
        assert area_under_risk([0.9, 0.1], outcomes) == 1 - outcomes[0]
        assert excess_area_under_risk([0.9, 0.1], outcomes) == 0
    assert (accuracy_at_coverage([0.3], [1]), area_under_risk([0.3], [0])) == (100, 1)


def test_many_draws_are_as_one_after_the_other() -> None:
    generator = np.random.default_rng(0)
    f = generator.random(30).round(1)
    c = (generator.random(30) < f).astype(float)
    # Draws of different size, as clusters of different size give them.
    weights = generator.integers(0, 4, size=(8, 30)).astype(float)
    groups = ranked(f, c, weights)
    together = (
        aurocs(groups),
        areas_under_risk(groups),
        excess_areas(groups),
        accuracies_at_coverage(groups),
    )
    for number, values in zip(NUMBERS, together, strict=True):
        for drawn, value in zip(weights.astype(int), values, strict=True):
            assert value == pytest.approx(number(np.repeat(f, drawn), np.repeat(c, drawn)), abs=1e-9)
