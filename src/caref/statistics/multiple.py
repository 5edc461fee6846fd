"""Several tests at once."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p-values: below a level exactly where his step-down test rejects at that level.

    The chance of even one false rejection is at most the level, however the tests depend on each other.

    Args:
        p_values: Of the tests of one family; None for a test that could not be done, which does not count.

    Returns:
        One for each, in their order, at least the given one and at most 1.

    Raises:
        ValueError: If a p-value is not in [0, 1].

    Example:
        >>> holm([0.01, 0.04, 0.03, None])
        [0.03, 0.06, 0.06, None]

    Source:
        Holm, 1979, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of
        Statistics 6.
    """
    for p in p_values:
        if p is not None and not 0 <= p <= 1:
            raise ValueError(f"a p-value lies between 0 and 1, got {p}")
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[place] = largest
    return adjusted
