"""A bootstrap of two levels: splits are drawn, then examples within each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def resampled_means(splits: Sequence[NDArray[np.float64]], *, draws: int, seed: int) -> NDArray[np.float64]:
    """Means over drawn splits of the means over drawn examples, of several columns at once.

    Args:
        splits: One array per split, of shape ``(examples, columns)``: as many columns in each, at least one
            example. All columns of an example are drawn together.
        draws: How often the splits, and the examples of each drawn split, are drawn with replacement.
        seed: Of the draws.

    Returns:
        Shape ``(draws, columns)``.

    Example:
        >>> one, two = np.array([[0.0], [1.0]]), np.array([[4.0], [4.0]])
        >>> means = resampled_means([one, two], draws=1000, seed=0)
        >>> means.shape, float(means.min()), float(means.max())
        ((1000, 1), 0.0, 4.0)

    Source:
        Davison and Hinkley, 1997, Bootstrap Methods and their Application, section 3.8.
    """
    values, sizes = np.concatenate(splits), np.array([len(split) for split in splits])
    begins = np.cumsum(sizes) - sizes
    alike = int(sizes[0]) if (sizes == sizes[0]).all() else None
    generator = np.random.default_rng(seed)
    means = np.empty((draws, values.shape[1]))
    for draw in range(draws):
        drawn = generator.integers(sizes.size, size=sizes.size)
        if alike is not None:
            places = generator.integers(alike, size=(sizes.size, alike)) + begins[drawn, None]
            means[draw] = values.take(places.ravel(), axis=0).mean(axis=0)
            continue
        own = np.repeat(sizes[drawn], sizes[drawn])
        places = generator.integers(own) + np.repeat(begins[drawn], sizes[drawn])
        first = np.cumsum(sizes[drawn]) - sizes[drawn]
        sums = np.add.reduceat(values.take(places, axis=0), first, axis=0)
        means[draw] = (sums / sizes[drawn, None]).mean(axis=0)
    return means
