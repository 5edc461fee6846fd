"""Bootstrap intervals that resample examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Interval = tuple[float, float]
"""The lower and the upper end of a 95 % interval."""

DRAWS = 1_000
SEED = 0
TAILS = (0.025, 0.975)


def bootstrap_interval(
    statistic: Callable[[NDArray[np.intp]], float | None],
    examples: int | Sequence[str],
    *,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Interval | None:
    """The percentile interval of a statistic over examples drawn with replacement.

    Args:
        statistic: Given the places of the drawn examples, an integer array of any length, gives a
            number; None where it is undefined for them.
        examples: How many there are; or, for each place, whose it is: places that share one are drawn
            together, as the same example in several splits has to be. Then their order does not matter.
        draws: How often all examples are drawn.
        seed: Of the draws.

    Returns:
        The 2.5 % and the 97.5 % quantile over the draws where the statistic is defined. None where that
        is fewer than half of them, and of fewer than two examples: an interval would say nothing.

    Example:
        >>> values = np.array([0.0, 1.0, 1.0, 1.0])
        >>> bootstrap_interval(lambda places: values[places].mean(), 4)
        (0.25, 1.0)
        >>> bootstrap_interval(lambda places: values[places].mean(), ["a", "a", "a", "a"])

    Source:
        Efron and Tibshirani, 1993, An Introduction to the Bootstrap, chapter 13.
    """
    if (examples if isinstance(examples, int) else len(set(examples))) < 2:
        return None
    values = map(statistic, drawn_places(examples, draws=draws, seed=seed))
    found = [value for value in values if value is not None]
    return percentile_interval(found) if 2 * len(found) >= draws else None


def drawn_places(
    examples: int | Sequence[str], *, draws: int = DRAWS, seed: int = SEED
) -> Iterator[NDArray[np.intp]]:
    """The places of as many examples as there are, drawn with replacement, `draws` times.

    Args:
        examples: As in `bootstrap_interval`; of none nothing is drawn.
        draws: How often all examples are drawn.
        seed: Of the draws.

    Example:
        >>> [places.tolist() for places in drawn_places(["a", "a"], draws=2)]
        [[0, 1], [0, 1]]
    """
    generator = np.random.default_rng(seed)
    if isinstance(examples, int):
        for _ in range(draws if examples else 0):
            yield generator.integers(examples, size=examples)
        return
    clusters: dict[str, list[int]] = {}
    for place, example in enumerate(examples):
        clusters.setdefault(example, []).append(place)
    places = [np.array(clusters[example], dtype=np.intp) for example in sorted(clusters)]
    for _ in range(draws if places else 0):
        drawn = generator.integers(len(places), size=len(places))
        yield np.concatenate([places[index] for index in drawn])


def percentile_interval(drawn: Sequence[float] | NDArray[np.float64]) -> Interval:
    """The 2.5 % and the 97.5 % quantile of what was drawn.

    Example:
        >>> percentile_interval([0.0, 1.0])
        (0.025, 0.975)
    """
    low, high = np.quantile(np.asarray(drawn, dtype=np.float64), TAILS)
    return float(low), float(high)


def mean_interval(
    values: Sequence[float] | NDArray[np.float64],
    examples: Sequence[str] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Interval | None:
    """The bootstrap interval of a mean.

    Args:
        values: Any number of them.
        examples: For each value whose it is, as in `bootstrap_interval`; without it every value is an
            example of its own.
        draws: How often all examples are drawn.
        seed: Of the draws.

    Returns:
        The interval; None of fewer than two examples.

    Example:
        >>> mean_interval([0.0, 1.0, 1.0, 1.0])
        (0.25, 1.0)
        >>> mean_interval([0.0, 1.0, 1.0, 1.0], ["a", "b", "b", "b"])
        (0.0, 1.0)
    """
    numbers = np.asarray(values, dtype=np.float64)
    ranks = {example: rank for rank, example in enumerate(sorted(set(examples or ())))}
    places = range(numbers.size) if examples is None else [ranks[example] for example in examples]
    sums, counts = np.bincount(places, weights=numbers), np.bincount(places)
    if sums.size < 2:
        return None
    generator = np.random.default_rng(seed)
    means = np.empty(draws)
    for draw in range(draws):
        drawn = generator.integers(sums.size, size=sums.size)
        means[draw] = sums[drawn].sum() / counts[drawn].sum()
    return percentile_interval(means)
