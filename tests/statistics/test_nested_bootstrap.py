from __future__ import annotations

import numpy as np
import pytest

from caref.statistics.nested_bootstrap import resampled_means


def one_by_one(splits: list[np.ndarray], draws: int, seed: int) -> np.ndarray:
    """The same draws, written out."""
    generator = np.random.default_rng(seed)
    means = []
    for _ in range(draws):
        drawn = [splits[place] for place in generator.integers(len(splits), size=len(splits))]
        inner = [split[generator.integers(len(split), size=len(split))].mean(axis=0) for split in drawn]
        means.append(np.mean(inner, axis=0))
    return np.array(means)


@pytest.mark.parametrize("sizes", [[7, 7, 7], [1, 9, 4, 30], [12]])
def test_it_is_drawing_splits_then_examples(sizes: list[int]) -> None:
    generator = np.random.default_rng(1)
    splits = [generator.normal(size=(size, 2)) for size in sizes]
    found = resampled_means(splits, draws=50, seed=3)
    np.testing.assert_allclose(found, one_by_one(splits, 50, 3), rtol=0, atol=1e-12)


def test_columns_of_an_example_stay_together() -> None:
    values = np.random.default_rng(2).normal(size=(40, 1))
    found = resampled_means([np.concatenate([values, 3 * values], axis=1)] * 2, draws=30, seed=0)
    np.testing.assert_allclose(found[:, 1], 3 * found[:, 0])
