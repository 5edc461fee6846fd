"""Temperature scaling: one number that makes probabilities flatter or sharper, fitted on other examples.

``softmax(s / T)`` of a question's scores `s`. A temperature above 1 flattens, below 1 sharpens; the order of
the candidates, and so the answer, stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from caref.errors import CarefError

Array = NDArray[np.float64]
Places = NDArray[np.intp]

BOUNDS = (0.01, 100.0)
"""Temperatures that are looked at."""

FOLDS = 5

_GRID = 241
"""Temperatures at which the losses of resamples are known; between them a parabola tells."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted temperature.

    Attributes:
        temperature: Within `BOUNDS`.
        at: The bound on which it lies, if on one: there is no best temperature within.
    """

    temperature: float
    at: Literal["lower", "upper"] | None = None


@dataclass(frozen=True, slots=True)
class CrossFit:
    """Temperatures for examples, each fitted without them.

    Attributes:
        overall: Fitted on all examples: for inputs that are none of them.
        by_fold: The fold to what was fitted on the other folds.
        folds: The fold of each prediction, of shape ``(n,)``.
        temperatures: That of its fold for each prediction, of shape ``(n,)``.
    """

    overall: Fit
    by_fold: dict[int, Fit]
    folds: Places
    temperatures: Array


def scaled_log_probabilities(scores: Array, temperature: float | Array = 1.0) -> Array:
    """``log softmax(s / T)`` of each row.

    Args:
        scores: Of shape ``(n, candidates)``; -inf where a row has fewer candidates, finite somewhere.
        temperature: Above 0; one, or one per row.

    Example:
        >>> scores = np.log(np.array([[0.9, 0.1]]))
        >>> np.exp(scaled_log_probabilities(scores, 2.0)).round(3).tolist()
        [[0.75, 0.25]]

    Source:
        Guo et al., 2017, arXiv:1706.04599.
    """
    # The largest first: at a low temperature the scores would leave the range of a float.
    divided = (scores - scores.max(axis=1, keepdims=True)) / np.reshape(temperature, (-1, 1))
    return divided - np.log(np.exp(divided).sum(axis=1, keepdims=True))


def fit_temperature(scores: Array, gold: Places) -> Fit:
    """The temperature of the smallest mean log loss, by a bounded search on its logarithm.

    The loss is convex in ``1 / T``, so that there is one minimum. It lies on a bound where the likeliest
    candidate is right throughout (the lower one), or the scores are no better than none (the upper one).

    Args:
        scores: Log-probabilities of the candidates up to a constant of each row, of shape
            ``(n, candidates)``; -inf where a row has fewer candidates.
        gold: The place of the gold answer in each row, of shape ``(n,)``.

    Raises:
        CarefError: If there is no row, or a gold answer has no finite score.

    Example:
        >>> scores = np.log(np.array([[0.9, 0.1]] * 4))  # sure at 0.9, right 3 times of 4
        >>> round(fit_temperature(scores, np.array([0, 0, 0, 1])).temperature, 3)
        2.0

    Source:
        Guo et al., 2017, arXiv:1706.04599.
    """
    from scipy.optimize import minimize_scalar

    if not gold.size:
        raise CarefError("a temperature needs at least one example, got none")
    if not np.isfinite(scores[np.arange(gold.size), gold]).all():
        raise CarefError("every gold answer needs a finite score: no temperature mends a probability of 0")
    low, high = np.log(BOUNDS)
    found = minimize_scalar(
        lambda log_t: _mean_loss(scores, gold, float(np.exp(log_t))),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-7},
    )
    # Where all are right the loss is 0 to the last digit long before the bound: the search stops there.
    if _mean_loss(scores, gold, BOUNDS[0]) <= found.fun:
        return Fit(BOUNDS[0], "lower")
    if _mean_loss(scores, gold, BOUNDS[1]) <= found.fun:
        return Fit(BOUNDS[1], "upper")
    return Fit(float(np.exp(found.x)))


def fold_of(id: str, folds: int = FOLDS) -> int:
    """The fold of an example, by its id alone: the same in every split and for every method.

    Example:
        >>> [fold_of(id) for id in ("1", "2", "3")]
        [3, 1, 3]
    """
    return int.from_bytes(hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()[:8], "big") % folds


def cross_fit(scores: Array, gold: Places, ids: Sequence[str], *, folds: int = FOLDS) -> CrossFit:
    """A temperature for every prediction, fitted on the examples of the other folds.

    Args:
        scores: As in `fit_temperature`.
        gold: As in `fit_temperature`.
        ids: Of the example of each row: rows of one id are in one fold.
        folds: How many; at least 2.

    Raises:
        CarefError: As in `fit_temperature`, or if there are too few ids: fewer than two a fold, or all in
            one.
    """
    if reason := too_few(ids, folds):
        raise CarefError(reason)
    places = np.array([fold_of(id, folds) for id in ids], dtype=np.intp)
    by_fold = {
        int(fold): fit_temperature(scores[places != fold], gold[places != fold]) for fold in np.unique(places)
    }
    return CrossFit(
        overall=fit_temperature(scores, gold),
        by_fold=by_fold,
        folds=places,
        temperatures=np.array([by_fold[int(fold)].temperature for fold in places]),
    )


def too_few(ids: Sequence[str], folds: int) -> str | None:
    """Why these examples cannot be cross-fitted; None where they can.

    Example:
        >>> too_few(["1", "2"], 5)
        'cross-fitting over 5 folds takes at least 10 examples, got 2'
    """
    different = set(ids)
    if len(different) < 2 * folds:
        return f"cross-fitting over {folds} folds takes at least {2 * folds} examples, got {len(different)}"
    if len({fold_of(id, folds) for id in different}) < 2:
        return f"all {len(different)} examples are in one fold"
    return None


def losses_on_grid(scores: Array, gold: Places) -> Array:
    """The loss of each row at each of the temperatures that `resampled_temperatures` looks at.

    Returns:
        Of shape ``(n, temperatures)``, in nats.
    """
    return np.stack([_losses(scores, gold, float(np.exp(each))) for each in _grid()], axis=1)


def resampled_temperatures(losses: Array, weights: Array) -> Array:
    """`fit_temperature` of each draw: the best of a grid, moved to the lowest point of its parabola.

    Args:
        losses: From `losses_on_grid`.
        weights: How often each row was drawn, of shape ``(draws, n)``.

    Returns:
        Of shape ``(draws,)``, each within some 0.1 % of the fit.
    """
    grid = _grid()
    means = weights @ losses / weights.sum(axis=1, keepdims=True)
    best = np.argmin(means, axis=1)
    inner = np.clip(best, 1, grid.size - 2)
    left, middle, right = (means[np.arange(len(means)), inner + step] for step in (-1, 0, 1))
    bend = left - 2 * middle + right
    shift = np.divide(left - right, 2 * bend, out=np.zeros_like(bend), where=bend > 0)
    moved = grid[inner] + np.clip(shift, -1, 1) * (grid[1] - grid[0])
    return np.exp(np.where(best == inner, moved, grid[best]))


def _grid() -> Array:
    """Logarithms of temperatures."""
    low, high = np.log(BOUNDS)
    return np.linspace(low, high, _GRID)


def _losses(scores: Array, gold: Places, temperature: float) -> Array:
    return -scaled_log_probabilities(scores, temperature)[np.arange(gold.size), gold]


def _mean_loss(scores: Array, gold: Places, temperature: float) -> float:
    return float(_losses(scores, gold, temperature).mean())
