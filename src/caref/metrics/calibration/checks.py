"""What confidences and outcomes have to be."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caref.errors import CarefError

Array = NDArray[np.float64]


def checked(confidences: ArrayLike, correct: ArrayLike) -> tuple[Array, Array]:
    """Both as arrays of float64 of one length.

    Raises:
        CarefError: If there is none, their numbers differ, a confidence lies outside [0, 1] or is NaN, or
            an outcome is neither 0 nor 1.

    Example:
        >>> checked([0.5, float("nan")], [1, 0])
        Traceback (most recent call last):
        caref.errors.CarefError: confidences must lie within [0, 1], got nan at place 1
    """
    f, c = np.asarray(confidences, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if f.ndim != 1 or f.shape != c.shape:
        raise CarefError(
            f"confidences and outcomes must be two lists of one length, got shapes {f.shape} and {c.shape}"
        )
    if not f.size:
        raise CarefError("there must be at least one confidence, got none")
    outside = np.flatnonzero(~((f >= 0) & (f <= 1)))  # NaN compares as False
    if outside.size:
        raise CarefError(f"confidences must lie within [0, 1], got {f[outside[0]]} at place {outside[0]}")
    other = np.flatnonzero((c != 0) & (c != 1))
    if other.size:
        raise CarefError(f"outcomes must be 1 or 0, got {c[other[0]]} at place {other[0]}")
    return f, c
