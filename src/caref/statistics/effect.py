"""How large a difference is, beside how much it varies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caref.statistics.number import Number

CONSTANT = "the differences do not vary between splits"
_ROUNDING = 1e-12


def deviation(differences: Sequence[float] | NDArray[np.float64]) -> Number:
    """The sample standard deviation of one difference per split.

    Returns:
        Above 0; undefined with fewer than two, and of differences that are all the same.

    Example:
        >>> deviation([1.0, 3.0]).value
        1.4142135623730951
        >>> deviation([1.0]), deviation([2.0, 2.0]).note
        (Number(value=None, note='one split'), 'the differences do not vary between splits')
    """
    numbers = np.asarray(differences, dtype=np.float64)
    if numbers.size < 2:
        return Number(None, "one split" if numbers.size else "no split")
    if float(np.ptp(numbers)) <= _ROUNDING * float(np.abs(numbers).max()):
        return Number(None, CONSTANT)
    return Number(float(numbers.std(ddof=1)))


def effect_size(differences: Sequence[float] | NDArray[np.float64]) -> Number:
    """Cohen's d_z of paired splits: the mean difference over its standard deviation between splits.

    Args:
        differences: One per split.

    Returns:
        Any number, of the differences' sign; undefined where `deviation` is.

    Example:
        >>> effect_size([1.0, 3.0]).value
        1.414213562373095

    Source:
        Cohen, 1988, Statistical Power Analysis for the Behavioral Sciences, section 2.3.5.
    """
    spread = deviation(differences)
    if spread.value is None:
        return spread
    return Number(float(np.mean(differences)) / spread.value)


def hedges_correction(degrees: float) -> float:
    """The factor that frees Cohen's d of its bias: ``gamma(m / 2) / (sqrt(m / 2) gamma((m - 1) / 2))``.

    Args:
        degrees: `m`, the degrees of freedom behind the standard deviation, above 1.

    Example:
        >>> round(hedges_correction(10), 4)  # about 1 - 3 / (4 * 10 - 1)
        0.9227

    Source:
        Hedges, 1981, Distribution Theory for Glass's Estimator of Effect Size and Related Estimators,
        Journal of Educational Statistics 6.
    """
    return math.exp(math.lgamma(degrees / 2) - math.lgamma((degrees - 1) / 2)) / math.sqrt(degrees / 2)
