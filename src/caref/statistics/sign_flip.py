"""Sign-flip tests: could the differences as well have the other sign?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caref.statistics.number import Number

ENUMERATED = 16
"""Up to so many differences all signs are tried; above, they are drawn."""

FEWEST_SPLITS = 6
"""With fewer, no outcome has a p-value below 0.05: the smallest is 2 / 2^n."""

FLIPS = 10_000
SEED = 0
_AT_ONCE = 2**20
_ROUNDING = 1e-9
"""Sums that are equal may differ in their last digits; these count as equal."""


def split_test(differences: Sequence[float] | NDArray[np.float64]) -> Number:
    """The two-sided p-value of the mean of one difference per split.

    It speaks about new draws of training examples, and assumes that without a difference each split would
    favour either setting alike and that splits are independent. They are not quite, for their training and
    evaluated examples come from one pool. The signs of up to 16 differences are all tried, of more 10,000
    draws are.

    Args:
        differences: One per split.

    Returns:
        The p-value, within (0, 1]; undefined below 6 splits.

    Example:
        >>> split_test([1.0, 2.0, 0.5, 1.0, 3.0, 2.0]).value  # all of one sign: 2 / 2^6
        0.03125
        >>> split_test([1.0, 2.0, 0.5]).note
        'with 3 splits p is never below 0.25; 6 are needed'

    Source:
        Fisher, 1935, The Design of Experiments, section 21.
    """
    shares = np.asarray(differences, dtype=np.float64)
    if shares.size < FEWEST_SPLITS:
        if shares.size < 2:
            return Number(None, "one split" if shares.size else "no split")
        return Number(
            None,
            f"with {shares.size} splits p is never below {2 / 2**shares.size:g}; {FEWEST_SPLITS} are needed",
        )
    return Number(
        exact_p_value(shares) if shares.size <= ENUMERATED else sampled_p_value(shares, flips=FLIPS)
    )


def exact_p_value(shares: NDArray[np.float64]) -> float:
    """The share of all sign patterns whose sum is at least as far from 0 as the one observed.

    Example:
        >>> exact_p_value(np.array([1.0, 1.0, 1.0]))
        0.25
    """
    sums = np.zeros(1)
    for share in shares:
        sums = np.concatenate([sums + share, sums - share])
    return float((np.abs(sums) >= _observed(shares)).mean())


def sampled_p_value(shares: NDArray[np.float64], *, flips: int, seed: int = SEED) -> float:
    """The same over random sign patterns, the observed one among them, so that it is never 0.

    Example:
        >>> sampled_p_value(np.ones(40), flips=99)
        0.01
    """
    observed, generator = _observed(shares), np.random.default_rng(seed)
    rows = max(1, _AT_ONCE // max(1, shares.size))
    extreme = 0
    for begin in range(0, flips, rows):
        signs = 1 - 2 * generator.integers(2, size=(min(rows, flips - begin), shares.size))
        extreme += int((np.abs(signs @ shares) >= observed).sum())
    return (extreme + 1) / (flips + 1)


def _observed(shares: NDArray[np.float64]) -> float:
    return float(abs(shares.sum()) - _ROUNDING * np.abs(shares).sum())
