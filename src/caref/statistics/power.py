"""How many splits it takes to see a difference."""

from __future__ import annotations

import math

from caref.statistics.number import Number

ALPHA = 0.05
POWER = 0.8
MOST_SPLITS = 1_000_000


def power_of(splits: int, difference: float, deviation: float, *, alpha: float = ALPHA) -> float:
    """The chance that the two-sided paired t-test over splits sees a difference.

    Args:
        splits: At least 2.
        difference: The true one.
        deviation: The standard deviation of a split's difference, above 0, in the same unit.
        alpha: The level of the test.

    Returns:
        Within [`alpha`, 1].

    Raises:
        ValueError: If `splits` or `deviation` is too small.

    Example:
        >>> round(power_of(10, 1.0, 1.0), 3)
        0.803
    """
    from scipy.stats import ncf, t

    if splits < 2 or deviation <= 0:
        raise ValueError(f"expected at least 2 splits and a deviation above 0, got {splits} and {deviation}")
    degrees, shift = splits - 1, difference / deviation * math.sqrt(splits)
    # The square of a noncentral t is a noncentral F with 1 degree of freedom, which takes both tails at once;
    # scipy's noncentral t is NaN for some large shifts.
    found = float(ncf.sf(t.ppf(1 - alpha / 2, degrees) ** 2, 1, degrees, shift**2))
    return max(alpha, found)  # at a shift of 0 scipy's is below 0


def splits_needed(difference: float, deviation: Number, *, power: float = POWER) -> Number:
    """The smallest number of splits at which a paired t-test sees a difference with this chance.

    Two-sided at the level 0.05, exact by the noncentral t distribution.

    Args:
        difference: The difference to see.
        deviation: The standard deviation of a split's difference, in the same unit.
        power: The chance to see it.

    Returns:
        A whole number, at least 2; undefined where the deviation is, for a difference of 0, and where it is
        more than a million.

    Example:
        >>> splits_needed(1.0, Number(2.0)).value
        34.0
        >>> splits_needed(1.0, Number(None, "one split")).note
        'one split'

    Source:
        Cohen, 1988, Statistical Power Analysis for the Behavioral Sciences, chapter 2.
    """
    if deviation.value is None:
        return deviation
    if difference == 0:
        return Number(None, "no number of splits shows a difference of 0")
    from scipy.stats import norm

    # The normal quantiles give too few; the t distribution asks for some more.
    ratio = (float(norm.ppf(1 - ALPHA / 2)) + float(norm.ppf(power))) * deviation.value / abs(difference)
    if ratio**2 > MOST_SPLITS:
        return Number(None, f"more than {MOST_SPLITS:,} splits")
    low = high = max(2, math.floor(ratio**2))
    if power_of(2, difference, deviation.value) >= power:
        return Number(2.0)
    while power_of(high, difference, deviation.value) < power:
        low, high = high, high + max(1, high // 8)
    if low == high:
        low = 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if power_of(middle, difference, deviation.value) >= power else (middle, high)
        )
    return Number(float(high))
