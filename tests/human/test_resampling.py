from __future__ import annotations

import numpy as np
import pytest

from caref.human.resampling import drawn_places, estimates
from caref.statistics.bootstrap import bootstrap_interval


def test_an_interval_is_that_of_the_bootstrap_elsewhere() -> None:
    owners = [str(place % 17) for place in range(51)]
    values = np.random.default_rng(0).normal(size=51)

    def mean(places: np.ndarray) -> float:
        return float(values[places].mean())

    found = estimates(lambda places: {"mean": mean(places)}, {"mean": 51}, {}, 51, drawn_places(owners))[
        "mean"
    ]
    assert found.value == pytest.approx(values.mean())
    assert found.interval == pytest.approx(bootstrap_interval(mean, owners))
    assert found.n == 51


def test_places_of_one_owner_are_drawn_together() -> None:
    for places in drawn_places(["a", "b", "a", "c"], draws=20):
        assert (places == 0).sum() == (places == 2).sum()


def test_a_statistic_that_is_mostly_undefined_has_no_interval() -> None:
    drawn = drawn_places(list("abcd"), draws=50)

    def found(least: int) -> float | None:
        def statistic(places: np.ndarray) -> dict[str, float | None]:
            return {"x": 1.0 if len(set(places.tolist())) >= least else None}

        return estimates(statistic, {"x": 4}, {"x": "why"}, 4, drawn)["x"].interval

    assert found(2) == (1.0, 1.0)
    assert found(4) is None  # seldom all of them


def test_an_undefined_value_tells_why() -> None:
    found = estimates(
        lambda places: {"x": None}, {"x": 0}, {"x": "why"}, 3, drawn_places(list("abc"), draws=5)
    )
    assert (found["x"].value, found["x"].interval, found["x"].note) == (None, None, "why")


def test_no_owner_and_no_draw() -> None:
    assert drawn_places([]) == []
    assert drawn_places(["a"], draws=0) == []
