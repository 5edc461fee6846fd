"""Bootstrap intervals of many estimates at once, over examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from caref.metrics.calibration.null import Estimate, in_blocks
from caref.statistics.bootstrap import DRAWS, SEED, Interval, percentile_interval

Array = NDArray[np.float64]


def bootstrap_intervals(
    ids: Sequence[str],
    estimate: Estimate,
    *,
    biased: Mapping[str, float] = MappingProxyType({}),
    draws: int = DRAWS,
    seed: int = SEED,
) -> dict[str, Interval]:
    """The 95 % interval of each estimate, examples being drawn with replacement.

    `statistics.bootstrap_interval` for estimates that take all draws at once, as numbers of times that each
    prediction was drawn.

    Args:
        ids: Of the predictions; those of one id are drawn together. Their order does not matter.
        estimate: Given counts of shape ``(draws, n)``, names to numbers of shape ``(draws,)``, NaN where
            one is undefined for the draw.
        biased: Estimates, by their name and at least 0, that chance alone raises, as it raises a calibration
            error. Drawing raises them once more, so that the percentile interval may lie above the
            estimate, and turned around it (the basic bootstrap) below. Their interval holds both: it reaches
            from the estimate, on either side, as far as the farther of the two quantiles, and ends at 0.
        draws: How often all examples are drawn.
        seed: Of the draws.

    Returns:
        Name to interval over the draws where it is defined, without the names for which that is fewer than
        half of them; nothing of fewer than two examples.

    Example:
        >>> values = np.array([0.0, 1.0, 1.0, 1.0])
        >>> def mean(counts):
        ...     return {"mean": counts @ values / counts.sum(axis=1)}
        >>> bootstrap_intervals(["a", "b", "c", "d"], mean)
        {'mean': (0.25, 1.0)}
        >>> bootstrap_intervals(["a", "b", "c", "d"], mean, biased={"mean": 0.75})
        {'mean': (0.25, 1.25)}
        >>> bootstrap_intervals(["a", "a", "a", "a"], mean)
        {}

    Source:
        Davison and Hinkley, 1997, Bootstrap Methods and their Application, section 5.2.
    """
    unique, owners = np.unique(np.asarray(ids, dtype=np.str_), return_inverse=True)
    if unique.size < 2:
        return {}
    generator = np.random.default_rng(seed)

    def some(rows: int) -> Mapping[str, Array]:
        drawn = generator.integers(unique.size, size=(rows, unique.size))
        flat = (drawn + np.arange(rows)[:, None] * unique.size).ravel()
        counts = np.bincount(flat, minlength=rows * unique.size).reshape(rows, unique.size)
        return estimate(counts[:, owners].astype(np.float64))

    intervals = {}
    for name, numbers in in_blocks(some, draws, len(owners)).items():
        known = numbers[~np.isnan(numbers)]
        if 2 * known.size >= draws:
            low, high = percentile_interval(known)
            if name in biased:
                reach = max(abs(high - biased[name]), abs(low - biased[name]))
                low, high = max(0.0, biased[name] - reach), biased[name] + reach
            intervals[name] = low, high
    return intervals
