"""Two groups of which only mean, standard deviation and size are known."""

from __future__ import annotations

import math
from dataclasses import dataclass

from caref.statistics.effect import hedges_correction
from caref.statistics.number import Number


@dataclass(frozen=True, slots=True)
class Moments:
    """What a published table says of a group.

    Attributes:
        mean: In any unit.
        std: The sample standard deviation, at least 0.
        n: The number of values, at least 2.

    Raises:
        ValueError: If `std` or `n` is too small.
    """

    mean: float
    std: float
    n: int

    def __post_init__(self) -> None:
        if self.std < 0 or self.n < 2:
            raise ValueError(f"expected a deviation of at least 0 of at least 2 values, got {self}")

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.std / math.sqrt(self.n)


@dataclass(frozen=True, slots=True)
class Welch:
    """The second group minus the first.

    Attributes:
        difference: Of the means.
        low: The lower end of the 95 % interval.
        high: Its upper end.
        p_value: Of the two-sided test that the means are equal.
        hedges_g: The difference over the pooled standard deviation, freed of its bias.
    """

    difference: float
    low: float
    high: float
    p_value: float
    hedges_g: Number


def welch(first: Moments, second: Moments) -> Welch | None:
    """Welch's test of two independent groups whose deviations may differ.

    Where the groups are the same splits, their values may vary together; then a paired test would see more,
    and needs each split's value.

    Returns:
        None where neither group varies: then there is nothing to hold the difference against.

    Example:
        >>> result = welch(Moments(1.0, 1.0, 60), Moments(2.0, 1.0, 60))
        >>> result.difference, round(result.low, 3), round(result.high, 3), f"{result.p_value:.1e}"
        (1.0, 0.638, 1.362, '2.5e-07')

    Source:
        Welch, 1947, The Generalization of Student's Problem, Biometrika.
    """
    from scipy.stats import t

    parts = first.error**2, second.error**2
    error = math.sqrt(sum(parts))
    if error == 0:
        return None
    degrees = sum(parts) ** 2 / (parts[0] ** 2 / (first.n - 1) + parts[1] ** 2 / (second.n - 1))
    difference = second.mean - first.mean
    reach = float(t.ppf(0.975, degrees)) * error
    return Welch(
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        p_value=float(2 * t.sf(abs(difference) / error, degrees)),
        hedges_g=_hedges_g(first, second),
    )


def _hedges_g(first: Moments, second: Moments) -> Number:
    degrees = first.n + second.n - 2
    pooled = math.sqrt(((first.n - 1) * first.std**2 + (second.n - 1) * second.std**2) / degrees)
    return Number((second.mean - first.mean) / pooled * hedges_correction(degrees))
