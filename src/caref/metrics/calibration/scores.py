"""Proper scores of probabilities: log loss and Brier scores, and what a Brier score is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caref.metrics.calibration.checks import checked

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class BrierParts:
    """``brier = reliability - resolution + uncertainty + within``, an identity.

    Attributes:
        reliability: Mean squared gap between a group's mean confidence and its share of right answers; 0 of
            a calibrated predictor.
        resolution: Mean squared distance of the groups' shares from the overall one: what the confidence
            tells of being right.
        uncertainty: ``q (1 - q)`` of the overall share `q`: it knows nothing of the confidences.
        within: What the confidences' differences within a group add: their variance, less twice their
            covariance with being right. 0 where a group holds one confidence only.
    """

    reliability: float
    resolution: float
    uncertainty: float
    within: float


def gold_losses(log_probabilities: Array, gold: NDArray[np.intp]) -> Array:
    """``-ln p[gold]`` of each row, in nats; infinite where that probability is 0.

    Args:
        log_probabilities: Of shape ``(n, candidates)``, at most 0.
        gold: The place of the gold answer in each row, of shape ``(n,)``.

    Example:
        >>> gold_losses(np.log([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 0])).round(4).tolist()
        [0.6931, 1.3863]
    """
    return np.maximum(-log_probabilities[np.arange(gold.size), gold], 0.0)


def brier_scores(probabilities: Array, gold: NDArray[np.intp]) -> Array:
    """``sum over candidates of (p - 1[gold])^2`` of each row, in [0, 2].

    Args:
        probabilities: Of shape ``(n, candidates)``; 0 where a row has fewer candidates.
        gold: The place of the gold answer in each row, of shape ``(n,)``.

    Example:
        >>> brier_scores(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([0, 0])).tolist()
        [0.5, 2.0]

    Source:
        Brier, 1950, Monthly Weather Review 78(1).
    """
    truth = np.zeros_like(probabilities)
    truth[np.arange(gold.size), gold] = 1.0
    return ((probabilities - truth) ** 2).sum(axis=1)


def top_label_brier(confidences: ArrayLike, correct: ArrayLike) -> float:
    """The mean of ``(c - f)^2``, in [0, 1].

    Example:
        >>> top_label_brier([1.0, 0.5], [1, 0])
        0.125
    """
    f, c = checked(confidences, correct)
    return float(((c - f) ** 2).mean())


def brier_parts(confidences: ArrayLike, correct: ArrayLike, places: Places | None = None) -> BrierParts:
    """What `top_label_brier` is made of.

    Args:
        confidences: In [0, 1], at least one.
        correct: 1 or 0 for each.
        places: The group of each, from 0; without it, equal confidences are a group. Where all
            confidences differ that says nothing: reliability is the score itself. Then take bins.

    Raises:
        CarefError: If a confidence or an outcome is not of these values, or their numbers differ.

    Example:
        >>> brier_parts([0.75, 0.75, 0.75, 0.75], [1, 1, 1, 0])
        BrierParts(reliability=0.0, resolution=0.0, uncertainty=0.1875, within=0.0)

    Source:
        Murphy, 1973, Journal of Applied Meteorology 12(4); within groups: Stephenson, Coelho and Jolliffe,
        2008, Weather and Forecasting 23(4).
    """
    f, c = checked(confidences, correct)
    groups = np.unique(f if places is None else places, return_inverse=True)[1]
    count = np.bincount(groups)
    mean_f, mean_c = (np.bincount(groups, weights=each) / count for each in (f, c))
    overall = c.mean()
    off_f, off_c = f - mean_f[groups], c - mean_c[groups]
    return BrierParts(
        reliability=float((count * (mean_f - mean_c) ** 2).sum() / f.size),
        resolution=float((count * (mean_c - overall) ** 2).sum() / f.size),
        uncertainty=float(overall * (1 - overall)),
        within=float((off_f**2 - 2 * off_f * off_c).mean()),
    )
