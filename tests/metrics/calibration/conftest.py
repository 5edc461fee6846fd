"""Predictions with known probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from caref.generation.prediction import Prediction

Simulate = Callable[..., list[Prediction]]


@pytest.fixture
def simulate() -> Simulate:
    """Predictions whose gold answers are drawn by ``softmax(z)`` and whose scores are ``temperature * z``."""

    def simulated(
        n: int,
        *,
        temperature: float = 1.0,
        candidates: int = 3,
        seed: int = 0,
        fixed: bool = True,
        ids: Sequence[str] | None = None,
    ) -> list[Prediction]:
        generator = np.random.default_rng(seed)
        made = []
        for place in range(n):
            z = generator.normal(size=candidates) * 1.5
            gold = generator.choice(candidates, p=np.exp(z) / np.exp(z).sum())
            scores = temperature * z - 5
            p = np.exp(scores - scores.max())
            names = [f"{'' if fixed else place}label {each}" for each in range(candidates)]
            made.append(
                Prediction(
                    id=str(place) if ids is None else ids[place],
                    label=names[0],
                    explanation="",
                    gold_label=names[gold],
                    gold_explanations=("",),
                    label_probabilities=dict(zip(names, (p / p.sum()).tolist(), strict=True)),
                    label_log_probs_sum=dict(zip(names, scores.tolist(), strict=True)),
                )
            )
        return made

    return simulated
