"""The calibration of one set of predictions: reliability diagram, confidences and risk-coverage curve."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from caref.metrics.calibration.binned import BINS, Bin, reliability_bins
from caref.metrics.calibration.null import null_draws
from caref.metrics.calibration.selective import risk_coverage_curve
from caref.reports.drawing import COLOURS, INK, as_svg, axes_grid
from caref.statistics.bootstrap import percentile_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def calibration_figure(confidences: Sequence[float], correct: Sequence[float], *, bins: int = BINS) -> str:
    """Draw the calibration of some answers.

    Left, the share of right answers in each bin against its mean confidence; the grey bar is where that share
    would lie in 95 of 100 cases were the bin's confidences perfectly calibrated. Below, how many answers
    have which confidence. Right, the share of wrong answers among the most confident ones, against how
    many of these there are; dotted, the least and, dashed, the mean that is possible with this accuracy.

    Args:
        confidences: In [0, 1], at least one.
        correct: 1 or 0 for each.
        bins: Of equal width.

    Returns:
        An SVG, the same bytes for the same numbers.

    Raises:
        CarefError: If a confidence or an outcome is not of these values, or their numbers differ.
    """
    f, c = np.asarray(confidences, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    found = reliability_bins(f, c, bins=bins)
    with axes_grid(2, rows=(3.0, 1.0), height=3.8) as (figure, axes):
        (reliability, risk), (counts, unused) = axes
        unused.remove()
        _reliability(reliability, found, f)
        counts.stairs(*np.histogram(f, bins=bins, range=(0, 1)), color=COLOURS[1], linewidth=1)
        counts.set_xlabel("confidence")
        counts.set_ylabel("count")
        counts.locator_params(axis="y", nbins=2)
        for ax in (reliability, counts):
            ax.set_xlim(-0.03, 1.03)
            ax.set_xticks([0, 0.5, 1])
        _risk(risk, f, c)
    return as_svg(figure, "Share right against confidence, and share wrong against coverage")


def _reliability(ax: Axes, found: Sequence[Bin], f: np.ndarray) -> None:
    low, high = _null_band(found, f)
    places = [each.confidence for each in found]
    ax.plot([0, 1], [0, 1], color=INK, linewidth=0.6, linestyle=(0, (2, 2)))
    ax.vlines(places, low, high, color=COLOURS[0], linewidth=5, alpha=0.35)
    ax.plot(places, [each.right for each in found], "o", color=COLOURS[1], markersize=4)
    ax.set_ylim(-0.03, 1.03)
    ax.set_ylabel("share right")
    ax.set_title("reliability")


def _null_band(found: Sequence[Bin], f: np.ndarray) -> tuple[list[float], list[float]]:
    """The 2.5 % and 97.5 % quantiles of each bin's share right, were its confidences probabilities."""
    ends = list(pairwise(np.cumsum([0, *(each.count for each in found)]).tolist()))
    shares = null_draws(
        np.sort(f),
        lambda outcomes: {f"{begin}": outcomes[:, begin:end].mean(axis=1) for begin, end in ends},
    )
    bands = [percentile_interval(shares[f"{begin}"]) for begin, _ in ends]
    return [low for low, _ in bands], [high for _, high in bands]


def _risk(ax: Axes, f: np.ndarray, c: np.ndarray) -> None:
    coverage, risk = risk_coverage_curve(f, c)
    best = np.maximum(0.0, 1 - c.sum() / (coverage * c.size))  # every right answer before any wrong one
    ax.plot(coverage, risk, color=COLOURS[1], linewidth=1.2)
    ax.plot(coverage, best, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    ax.axhline(1 - c.mean(), color=INK, linewidth=0.6, linestyle=(0, (4, 3)))
    ax.set_xlim(-0.03, 1.03)
    ax.set_xticks([0, 0.5, 1])
    ax.set_xlabel("coverage, most confident first")
    ax.set_ylabel("share wrong")
    ax.set_title("risk and coverage")
