"""Calibration errors from bins of confidences, and the bins themselves for a reliability diagram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caref.metrics.calibration.checks import checked

Array = NDArray[np.float64]
Places = NDArray[np.intp]

BINS = 15


@dataclass(frozen=True, slots=True)
class Bin:
    """The predictions of one bin: a point of the reliability diagram.

    Attributes:
        place: Which bin, from 0.
        low: Its lower edge; of equal mass, the smallest confidence in it.
        high: Its upper edge; of equal mass, the largest confidence in it.
        count: How many predictions.
        confidence: Their mean confidence.
        right: The share of them that is right.
    """

    place: int
    low: float
    high: float
    count: int
    confidence: float
    right: float


@dataclass(frozen=True, slots=True)
class BinSums:
    """Sums over the predictions of each bin, of shape ``(..., bins)``: all that the binned errors need.

    Attributes:
        count: How many predictions, drawn ones as often as they were drawn.
        confidence: The sum of their confidences.
        right: How many of them are right.
    """

    count: Array
    confidence: Array
    right: Array


def reliability_bins(
    confidences: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = BINS,
    equal: Literal["width", "mass"] = "width",
) -> list[Bin]:
    """The bins that hold something, in the order of confidence.

    Args:
        confidences: In [0, 1], at least one.
        correct: 1 or 0 for each.
        bins: How many, the empty ones included.
        equal: What the bins have in common: `equal_width_places` or `equal_mass_places`.

    Raises:
        CarefError: If a confidence or an outcome is not of these values, or their numbers differ.

    Example:
        >>> for each in reliability_bins([0.6, 0.7, 1.0], [1, 0, 1], bins=2):
        ...     print(each.place, each.count, round(each.confidence, 3), round(each.right, 3))
        1 3 0.767 0.667
    """
    f, c = checked(confidences, correct)
    places = equal_width_places(f, bins) if equal == "width" else equal_mass_places(f, bins)
    sums = bin_sums(places, f, c, bins)
    found = []
    for place in np.flatnonzero(sums.count):
        inside, count = f[places == place], sums.count[place]
        width = equal == "width"
        found.append(
            Bin(
                place=int(place),
                low=place / bins if width else float(inside.min()),
                high=(place + 1) / bins if width else float(inside.max()),
                count=int(count),
                confidence=float(sums.confidence[place] / count),
                right=float(sums.right[place] / count),
            )
        )
    return found


def calibration_error(confidences: ArrayLike, correct: ArrayLike, *, bins: int = BINS) -> float:
    """The calibration error with bins of equal width (ECE).

    Args:
        confidences: In [0, 1], at least one.
        correct: 1 or 0 for each.
        bins: Number of bins; each holds its lower edge, the last its upper one too.

    Returns:
        ``sum over bins of |sum of (correct - confidence) in the bin| / n``, in [0, 1].

    Raises:
        CarefError: If a confidence or an outcome is not of these values, or their numbers differ.

    Example:
        >>> calibration_error([1.0, 1.0, 0.75, 0.75], [1, 0, 1, 1])
        0.375

    Source:
        Guo et al., 2017, arXiv:1706.04599.
    """
    f, c = checked(confidences, correct)
    return float(mean_gap(bin_sums(equal_width_places(f, bins), f, c, bins)))


def equal_mass_error(confidences: ArrayLike, correct: ArrayLike, *, bins: int = BINS) -> float:
    """`calibration_error` with bins that hold as many predictions each as ties allow.

    Example:
        >>> equal_mass_error([0.5, 0.5, 0.5, 1.0], [1, 0, 1, 1], bins=2)
        0.125

    Source:
        Nixon et al., 2019, arXiv:1904.01685.
    """
    f, c = checked(confidences, correct)
    return float(mean_gap(bin_sums(equal_mass_places(f, bins), f, c, bins)))


def maximum_error(confidences: ArrayLike, correct: ArrayLike, *, bins: int = BINS) -> float:
    """The largest gap between mean confidence and share of right answers of a bin of equal width, in [0, 1].

    One prediction alone in its bin can make it: read it beside its null band.

    Example:
        >>> maximum_error([1.0, 1.0, 0.75, 0.75], [1, 0, 1, 1])
        0.5

    Source:
        Guo et al., 2017, arXiv:1706.04599 (MCE).
    """
    f, c = checked(confidences, correct)
    return float(largest_gap(bin_sums(equal_width_places(f, bins), f, c, bins)))


def debiased_error(confidences: ArrayLike, correct: ArrayLike, *, bins: int = BINS) -> float | None:
    """The debiased root mean square calibration error, with bins of equal mass.

    ``sqrt(max(0, sum over bins of n_b / n * ((c_b - f_b)^2 - c_b (1 - c_b) / (n_b - 1))))`` with the share
    of right answers `c_b` and the mean confidence `f_b` of a bin: what the chance of its outcomes adds to
    its squared gap is taken off again. A bin of one prediction, where that is not known, adds nothing.

    Returns:
        In [0, 1]; None where no bin holds two predictions.

    Example:
        >>> debiased_error([0.75, 0.75, 0.75, 0.75], [1, 1, 1, 0])
        0.0
        >>> debiased_error([1.0, 1.0, 1.0], [0, 0, 0])
        1.0

    Source:
        Kumar, Liang and Ma, 2019, arXiv:1909.10155, section 5.
    """
    f, c = checked(confidences, correct)
    sums = bin_sums(equal_mass_places(f, bins), f, c, bins)
    return float(debiased_gap(sums)) if sums.count.max() >= 2 else None


def equal_width_places(confidences: Array, bins: int) -> Places:
    """The bin of each confidence, the bins being equal parts of [0, 1].

    A bin holds its lower edge, the last one 1 too.
    """
    # Comparing with the edges puts a confidence of k / bins into bin k; multiplying may round it below.
    return np.searchsorted(np.arange(1, bins) / bins, confidences, side="right")


def equal_mass_places(confidences: Array, bins: int, weights: Array | None = None) -> Places:
    """The bin of each confidence: ``floor(bins * smaller / n)``, `smaller` being how many are below it.

    Without ties the bins hold the same number, give or take one; equal confidences are always in one bin.

    Args:
        confidences: Of shape ``(n,)``.
        bins: How many; where equal confidences fill several, some stay empty.
        weights: How often each was drawn, of shape ``(draws, n)``: each row has bins of its own.

    Returns:
        Of the shape of `confidences`, or of `weights` where given.
    """
    order = np.argsort(confidences, kind="stable")
    first = np.searchsorted(confidences[order], confidences, side="left")
    if weights is None:
        return first * bins // confidences.size
    below = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights[:, order], axis=1)], axis=1)
    places = below[:, first] * bins // below[:, -1:]
    # What was not drawn may lie above all that was.
    return np.minimum(places, bins - 1).astype(np.intp)


def bin_sums(
    places: Places, confidences: Array, correct: Array, bins: int, weights: Array | None = None
) -> BinSums:
    """The sums of each bin.

    Args:
        places: The bin of each prediction, of shape ``(n,)`` or ``(draws, n)``.
        confidences: Of shape ``(n,)``.
        correct: Of shape ``(n,)`` or ``(draws, n)``.
        bins: How many.
        weights: How often each was drawn, of shape ``(draws, n)``; once without it.
    """
    shape = np.broadcast_shapes(places.shape, correct.shape, () if weights is None else weights.shape)
    rows = np.arange(int(np.prod(shape[:-1]))) * bins
    flat = (np.broadcast_to(places, shape).reshape(-1, shape[-1]) + rows[:, None]).ravel()

    def summed(values: Array) -> Array:
        sums = np.bincount(flat, weights=np.broadcast_to(values, shape).ravel(), minlength=rows.size * bins)
        return sums.astype(np.float64, copy=False).reshape(*shape[:-1], bins)

    drawn = np.ones(()) if weights is None else weights
    return BinSums(summed(drawn), summed(confidences * drawn), summed(correct * drawn))


def mean_gap(sums: BinSums) -> Array:
    """The mean over predictions of their bin's gap, of shape ``(...)``."""
    return np.abs(sums.right - sums.confidence).sum(-1) / sums.count.sum(-1)


def largest_gap(sums: BinSums) -> Array:
    """The largest gap of a bin that holds something, of shape ``(...)``."""
    return (np.abs(sums.right - sums.confidence) / np.maximum(sums.count, 1)).max(-1)


def debiased_gap(sums: BinSums) -> Array:
    """`debiased_error` of the bins, of shape ``(...)``."""
    some = np.maximum(sums.count, 1)
    right, confidence = sums.right / some, sums.confidence / some
    chance = right * (1 - right) / np.maximum(sums.count - 1, 1)
    squares = np.where(sums.count >= 2, (right - confidence) ** 2 - chance, 0.0)
    return np.sqrt(np.maximum((sums.count * squares).sum(-1) / sums.count.sum(-1), 0.0))
