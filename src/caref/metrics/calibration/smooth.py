"""The smooth calibration error: no bins, and a bandwidth that the data choose."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caref.metrics.calibration.checks import checked

Array = NDArray[np.float64]

COARSEST, FINEST = 256, 8192
"""Cells that [0, 1] is cut into."""

EXACT = 20.0
"""Cells that a bandwidth spans for a single number: its relative error is then below 1e-4."""

_STEPS = 60

_BLOCK = 1_000_000
"""Cosines held in memory at once."""


def smooth_error(confidences: ArrayLike, correct: ArrayLike) -> float:
    """The smooth calibration error, smECE.

    With ``r(t) = 1/n sum over i of K(t, f_i) (c_i - f_i)``, where `K` is a Gaussian kernel of bandwidth
    sigma that is reflected at 0 and at 1, the error at that bandwidth is the integral of ``|r|`` over
    [0, 1]. It falls as sigma grows; the smooth error is where it equals sigma.

    Args:
        confidences: In [0, 1], at least one.
        correct: 1 or 0 for each.

    Returns:
        In [0, 1]: at least ``|mean of (c - f)|``, at most the mean of ``|c - f|``. Bandwidths below
        6e-4, which take some hundred thousand predictions, are not told from one another.

    Raises:
        CarefError: If a confidence or an outcome is not of these values, or their numbers differ.

    Example:
        >>> round(smooth_error([1.0, 1.0, 1.0], [0, 0, 0]), 6)
        1.0
        >>> round(smooth_error([0.75, 0.75, 0.75, 0.75], [1, 1, 1, 0]), 6)
        0.0

    Source:
        Blasiok and Nakkiran, 2024, arXiv:2309.12236.
    """
    f, c = checked(confidences, correct)
    return float(smooth_errors(f, (c - f)[None] / f.size, cells_per_width=EXACT, tolerance=1e-10)[0])


def smooth_errors(
    confidences: Array, residuals: Array, *, cells_per_width: float = 6.0, tolerance: float = 1e-5
) -> Array:
    """Many smooth errors over the same confidences.

    The kernel is the heat kernel of [0, 1] without a flow through its ends, whose cosine series is exact:
    ``K(t, f) = 1 + 2 sum over k of exp(-(sigma pi k)^2 / 2) cos(pi k t) cos(pi k f)``. So a cosine
    transform gives `r` on a grid, which is made finer for the rows whose bandwidth asks for it.

    Args:
        confidences: Of shape ``(n,)``.
        residuals: ``weight * (c - f)``, the weights of a row adding up to 1, of shape ``(draws, n)``.
        cells_per_width: Grid cells that a bandwidth spans at least; 6 keep the error below some 0.1 %.
        tolerance: Of the bandwidth.

    Returns:
        Of shape ``(draws,)``.
    """
    order = np.argsort(confidences, kind="stable")
    values, starts = np.unique(confidences[order], return_index=True)
    masses = np.add.reduceat(residuals[:, order], starts, axis=1)
    errors = np.empty(len(masses))
    rows, cells = np.arange(len(masses)), COARSEST
    while rows.size:
        modes = _modes(values, masses[rows], cells)
        errors[rows] = _fixed_points(modes, np.abs(masses[rows]).sum(axis=1), tolerance)
        if cells >= FINEST:
            break
        rows = rows[errors[rows] * cells < cells_per_width]
        rows = rows[errors[rows] > 0]
        cells *= 2
    # Its bounds are exact; a grid too coarse for a tiny bandwidth may leave them.
    return np.clip(errors, np.abs(masses.sum(axis=1)), np.abs(masses).sum(axis=1))


def _modes(values: Array, masses: Array, cells: int) -> Array:
    """``sum over i of mass_i cos(pi k value_i)`` for `k` from 0 below `cells`, of shape ``(rows, cells)``."""
    step = max(1, _BLOCK // cells)
    return np.sum(
        [
            masses[:, start : start + step]
            @ np.cos(np.pi * np.outer(values[start : start + step], np.arange(cells)))
            for start in range(0, values.size, step)
        ],
        axis=0,
    )


def _fixed_points(modes: Array, highest: Array, tolerance: float) -> Array:
    """Where the error of each row equals the bandwidth: regula falsi with the Illinois rule.

    Args:
        modes: From `_modes`.
        highest: The error at bandwidth 0, of shape ``(rows,)``.
        tolerance: Of the bandwidth.
    """
    # The error falls with the bandwidth: at `highest` it is at most that, and there it gives a lower end.
    low, high = _errors_at(modes, highest), highest.copy()
    above = _errors_at(modes, low) - low  # at least 0
    below = low - high  # at most 0
    found, side = low.copy(), np.zeros(len(modes))
    active = np.flatnonzero(high - low > tolerance)
    for _ in range(_STEPS):
        if not active.size:
            break
        a, b = above[active], below[active]
        with np.errstate(invalid="ignore", divide="ignore"):
            step = np.where(a > b, a / (a - b), 0.5)
        at = low[active] + step * (high[active] - low[active])
        gap = _errors_at(modes[active], at) - at
        moved = np.abs(at - found[active])
        found[active] = at
        up = gap > 0
        # An end that stays twice counts half, or it would stay for good.
        below[active] = np.where(up, np.where(side[active] > 0, b / 2, b), gap)
        above[active] = np.where(up, gap, np.where(side[active] < 0, a / 2, a))
        low[active] = np.where(up, at, low[active])
        high[active] = np.where(up, high[active], at)
        side[active] = np.where(up, 1, -1)
        narrow = high[active] - low[active] <= tolerance
        still = (np.abs(gap) <= tolerance / 10) | ((moved <= tolerance / 10) & (np.abs(gap) <= tolerance))
        active = active[~(narrow | still)]
    return found


def _errors_at(modes: Array, widths: Array) -> Array:
    """The integral of ``|r|`` by the midpoint rule, each row at its own bandwidth."""
    from scipy.fft import dct

    cells = modes.shape[1]
    damped = modes * np.exp(-0.5 * (np.pi * widths[:, None] * np.arange(cells)) ** 2)
    return np.abs(dct(damped, type=3, axis=1, overwrite_x=True)).mean(axis=1)
