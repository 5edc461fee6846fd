"""Temperature scaling: the fit, its bounds, and that no example is scaled by a fit that saw it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from caref.errors import CarefError
from caref.metrics.calibration import temperature as module
from caref.metrics.calibration.temperature import (
    BOUNDS,
    Fit,
    cross_fit,
    fit_temperature,
    fold_of,
    losses_on_grid,
    resampled_temperatures,
    scaled_log_probabilities,
    too_few,
)

Array = NDArray[np.float64]
ROWS = st.lists(st.lists(st.floats(-50, 0), min_size=3, max_size=3), min_size=1, max_size=10)


def overconfident(n: int, temperature: float, seed: int = 0) -> tuple[Array, NDArray[np.intp], list[str]]:
    """Scores that need to be divided by `temperature`, gold places, ids."""
    generator = np.random.default_rng(seed)
    z = generator.normal(size=(n, 3)) * 1.5
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    gold = (generator.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    return temperature * z, gold, [str(place) for place in range(n)]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_of_a_simulation_is_recovered(temperature: float) -> None:
    scores, gold, _ = overconfident(20_000, temperature)
    assert fit_temperature(scores, gold).temperature == pytest.approx(temperature, rel=0.03)


def test_closed_form() -> None:
    # Odds of 9 that should be 3: T = ln 9 / ln 3.
    scores = np.log(np.array([[0.9, 0.1]] * 4))
    fit = fit_temperature(scores, np.array([0, 0, 0, 1]))
    assert (fit.temperature, fit.at) == (pytest.approx(2.0, rel=1e-6), None)


@pytest.mark.parametrize(
    ("gold", "at", "temperature"), [([0, 0], "lower", BOUNDS[0]), ([1, 1], "upper", BOUNDS[1])]
)
def test_the_bounds(gold: list[int], at: Any, temperature: float) -> None:
    """Right throughout: the sharper the better. Wrong throughout: nothing is better than a uniform answer."""
    for p in ([[0.7, 0.3], [0.6, 0.4]], [[0.9, 0.1]] * 30, [[0.999, 0.001]] * 3):
        assert fit_temperature(np.log(p), np.array((gold * 15)[: len(p)])) == Fit(temperature, at)


def test_what_cannot_be_fitted() -> None:
    with pytest.raises(CarefError, match="at least one example, got none"):
        fit_temperature(np.zeros((0, 2)), np.zeros(0, dtype=np.intp))
    with pytest.raises(CarefError, match="every gold answer needs a finite score"):
        fit_temperature(np.array([[0.0, -np.inf]]), np.array([1]))


@given(ROWS, st.floats(0.01, 100))
def test_scaling_keeps_the_order_and_adds_up_to_1(rows: list[list[float]], temperature: float) -> None:
    scores = np.array(rows)
    p = np.exp(scaled_log_probabilities(scores, temperature))
    assert p.sum(axis=1) == pytest.approx(1)
    best = p[np.arange(len(p)), scores.argmax(axis=1)]
    assert (best == p.max(axis=1)).all()


@given(ROWS)
def test_a_temperature_of_1_leaves_probabilities(rows: list[list[float]]) -> None:
    weights = np.exp(np.array(rows))
    p = weights / weights.sum(axis=1, keepdims=True)
    assert np.exp(scaled_log_probabilities(np.array(rows), 1.0)) == pytest.approx(p, abs=1e-12)


def test_missing_candidates_stay_missing() -> None:
    logs = scaled_log_probabilities(
        np.array([[-1.0, -2.0, -np.inf], [-1.0, -2.0, -3.0]]), np.array([2.0, 0.5])
    )
    assert np.exp(logs[0]) == pytest.approx([1 / (1 + np.exp(-0.5)), 1 / (1 + np.exp(0.5)), 0])
    assert np.exp(logs[1]).sum() == pytest.approx(1)


def test_no_example_is_scaled_by_a_fit_that_saw_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spy reads which examples each fit was given; the first score is the example's number."""
    seen: dict[float, set[int]] = {}

    def spy(scores: Array, gold: NDArray[np.intp]) -> Fit:
        seen[len(seen) + 1.0] = {int(number) for number in scores[:, 0]}
        return Fit(float(len(seen)))

    monkeypatch.setattr(module, "fit_temperature", spy)
    ids = [f"id {number % 40}" for number in range(60)]  # some are there twice
    scores = np.stack([np.arange(60.0), np.zeros(60)], axis=1)
    found = cross_fit(scores, np.zeros(60, dtype=np.intp), ids)
    for number, used in enumerate(found.temperatures):
        others = {ids[each] for each in seen[used]}
        assert ids[number] not in others
        assert {id for id in ids if fold_of(id) != fold_of(ids[number])} == others
    assert seen[found.overall.temperature] == set(range(60))


def test_an_example_that_is_there_twice_is_in_one_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool of two splits: what scales an example has seen none of its predictions."""
    seen: list[set[int]] = []

    def spy(scores: Array, gold: NDArray[np.intp]) -> Fit:
        seen.append({int(number) for number in scores[:, 0]})
        return Fit(float(len(seen)))

    monkeypatch.setattr(module, "fit_temperature", spy)
    ids = [str(number) for number in [*range(30), *range(20, 50)]]
    scores = np.stack([np.arange(60.0), np.zeros(60)], axis=1)
    found = cross_fit(scores, np.zeros(60, dtype=np.intp), ids)
    for number, used in enumerate(found.temperatures):
        assert ids[number] not in {ids[each] for each in seen[int(used) - 1]}
    assert found.temperatures[20:30].tolist() == found.temperatures[30:40].tolist()


def test_folds_are_even_and_of_the_id_alone() -> None:
    counts = Counter(fold_of(str(number)) for number in range(5000))
    assert set(counts) == set(range(5))
    assert all(900 < count < 1100 for count in counts.values())
    assert fold_of("premise 7", 5) == fold_of("premise 7", 5)
    fold_of("\ud800")  # half a surrogate pair, as JSON may have it


def test_too_few_examples() -> None:
    assert too_few([str(number) for number in range(9)] * 3, 5) == (
        "cross-fitting over 5 folds takes at least 10 examples, got 9"
    )
    assert too_few([str(number) for number in range(10)], 5) is None
    alike = [str(number) for number in range(200) if fold_of(str(number), 5) == 0]
    assert too_few(alike, 5) == f"all {len(alike)} examples are in one fold"
    with pytest.raises(CarefError, match="takes at least 10 examples, got 1"):
        cross_fit(np.zeros((1, 2)), np.zeros(1, dtype=np.intp), ["a"])


def test_the_fits_of_resamples_are_those_of_the_search() -> None:
    scores, gold, _ = overconfident(120, 2.5)
    weights = np.random.default_rng(0).multinomial(120, np.full(120, 1 / 120), size=10).astype(float)
    found = resampled_temperatures(losses_on_grid(scores, gold), weights)
    for drawn, temperature in zip(weights.astype(int), found, strict=True):
        rows = np.repeat(np.arange(120), drawn)
        assert temperature == pytest.approx(fit_temperature(scores[rows], gold[rows]).temperature, rel=1e-3)
    right = losses_on_grid(np.log([[0.7, 0.3], [0.6, 0.4]]), np.array([0, 0]))
    assert resampled_temperatures(right, np.ones((1, 2))) == pytest.approx([BOUNDS[0]])
