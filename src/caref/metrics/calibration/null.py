"""What an estimator says of a perfectly calibrated predictor of the same confidences."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caref.metrics.calibration.binned import BINS, bin_sums, equal_width_places, mean_gap

Array = NDArray[np.float64]

DRAWS = 1000
"""How often the outcomes are drawn anew."""

SEED = 0

QUANTILE = 0.95

BLOCK = 1_000_000
"""Outcomes held in memory at once."""

Estimate = Callable[[Array], Mapping[str, Array]]
"""Outcomes of shape ``(draws, n)`` to named numbers of shape ``(draws,)``."""


def null_draws(
    confidences: Array, estimate: Estimate, *, draws: int = DRAWS, seed: int = SEED
) -> dict[str, Array]:
    """Estimates were every confidence the probability of being right.

    Args:
        confidences: In [0, 1], in ascending order: then the same ones meet the same random numbers.
        estimate: Given outcomes of `confidences`, 1 with the confidence as probability.
        draws: How often all outcomes are drawn.
        seed: Of the draws.

    Returns:
        The names of `estimate` to one number per draw.
    """
    generator = np.random.default_rng(seed)
    return in_blocks(
        lambda rows: estimate((generator.random((rows, confidences.size)) < confidences).astype(np.float64)),
        draws,
        confidences.size,
    )


def null_calibration_errors(
    confidences: ArrayLike, *, bins: int = BINS, draws: int = DRAWS, seed: int = SEED
) -> Array:
    """What the calibration error would be were every confidence the probability of being right.

    Args:
        confidences: In [0, 1], at least one; their order does not matter.
        bins: As in `calibration_error`.
        draws: How often all outcomes are drawn.
        seed: Of the draws.

    Returns:
        One calibration error per draw, of shape ``(draws,)``.

    Source:
        Vaicenavicius et al., 2019, arXiv:1902.06977.
    """
    f = np.sort(np.asarray(confidences, dtype=np.float64))
    places = equal_width_places(f, bins)
    drawn = null_draws(
        f, lambda outcomes: {"error": mean_gap(bin_sums(places, f, outcomes, bins))}, draws=draws, seed=seed
    )
    return drawn["error"]


def null_values(drawn: Mapping[str, Array]) -> dict[str, float]:
    """``<name>_expected``, the mean, and ``<name>_95``, the 95 % quantile, of each name.

    Example:
        >>> null_values({"error": np.array([0.0, 1.0])})
        {'error_expected': 0.5, 'error_95': 0.95}
    """
    values = {}
    for name, numbers in drawn.items():
        values[f"{name}_expected"] = float(numbers.mean())
        values[f"{name}_95"] = float(np.quantile(numbers, QUANTILE))
    return values


def in_blocks(estimate: Callable[[int], Mapping[str, Array]], draws: int, size: int) -> dict[str, Array]:
    """`estimate` of some draws after the other, so that large sets fit into memory.

    Args:
        estimate: Given a number of draws, names to that many numbers.
        draws: In all.
        size: Of one draw.
    """
    step = max(1, BLOCK // max(1, size))
    parts = [estimate(min(step, draws - done)) for done in range(0, draws, step)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
