"""The equations of the objective once more, one token at a time, in NumPy float64."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np


def probabilities(row: np.ndarray) -> np.ndarray:
    weights = np.array([math.exp(score - row.max()) for score in row])
    return weights / math.fsum(weights)


def ce(row: np.ndarray, label: int) -> float:
    return math.log(math.fsum(math.exp(score - row[label]) for score in row))


def kl(row: np.ndarray) -> float:
    """``log V - H``, rather than the sum of q."""
    entropy = -math.fsum(p * math.log(p) for p in probabilities(row) if p > 0)
    return math.log(len(row)) - entropy


def sced(row: np.ndarray, alpha: float, beta: float, log_vocab: bool = False) -> float:
    uniform = 1 / len(row)
    total = 0.0
    for p in probabilities(row):
        share = p * math.log(p / uniform) if p > 0 else 0.0
        if log_vocab:
            share /= math.log(len(row))
        total += abs(share) ** alpha * (1 - p) ** beta
    return total


def sced_logit_gradient(row: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    """``P_j (g_j - sum_v P_v g_v)`` with g the derivative on a probability."""
    p = probabilities(row)
    log_ratio = np.log(p * len(row))
    q = np.abs(p * log_ratio)
    g = alpha * q ** (alpha - 1) * np.sign(log_ratio) * (log_ratio + 1) * (1 - p) ** beta
    g -= beta * q**alpha * (1 - p) ** (beta - 1)
    return p * (g - p @ g)


def rows(logits: np.ndarray, labels: np.ndarray, ignore_index: int) -> Iterator[tuple[tuple[int, ...], int]]:
    for where in np.ndindex(labels.shape):
        if labels[where] != ignore_index:
            yield where, int(labels[where])


def caref(
    logits: np.ndarray,
    labels: np.ndarray,
    alpha: float,
    beta: float,
    lambda_sced: float,
    lambda_kl: float,
    ignore_index: int = -100,
    log_vocab: bool = False,
) -> float:
    values = [
        ce(logits[where], label)
        + lambda_sced * sced(logits[where], alpha, beta, log_vocab)
        + lambda_kl * kl(logits[where])
        for where, label in rows(logits, labels, ignore_index)
    ]
    return sum(values) / len(values) if values else 0.0
