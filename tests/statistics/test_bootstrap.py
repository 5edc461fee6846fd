from __future__ import annotations

import numpy as np
import pytest

from caref.statistics.bootstrap import bootstrap_interval, mean_interval, percentile_interval


def test_the_interval_of_a_mean_covers_it_about_95_times_in_100() -> None:
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(300):
        values = generator.normal(3.0, 2.0, size=60)
        interval = mean_interval(values.tolist(), draws=300)
        assert interval is not None
        covered += interval[0] <= 3.0 <= interval[1]
    assert 0.90 <= covered / 300 <= 0.985


def test_a_clustered_interval_is_wider_than_one_that_counts_copies() -> None:
    values = np.random.default_rng(2).normal(size=40)
    copied, owners = np.tile(values, 9), [f"{place:02}" for place in range(40)] * 9

    def mean(places: np.ndarray) -> float:
        return float(copied[places].mean())

    alone = bootstrap_interval(lambda places: float(values[places].mean()), 40)
    as_if = bootstrap_interval(mean, copied.size)
    clustered = bootstrap_interval(mean, owners)
    assert alone is not None and as_if is not None and clustered is not None
    assert clustered == pytest.approx(alone, abs=1e-12)
    assert as_if[1] - as_if[0] < 0.5 * (clustered[1] - clustered[0])


def test_mean_interval_is_the_bootstrap_of_the_mean() -> None:
    values = np.random.default_rng(3).normal(size=31)
    by_hand = bootstrap_interval(lambda places: float(values[places].mean()), 31)
    assert mean_interval(values.tolist()) == pytest.approx(by_hand, abs=1e-12)
    owners = [str(place % 7) for place in range(31)]
    by_hand = bootstrap_interval(lambda places: float(values[places].mean()), owners)
    assert mean_interval(values.tolist(), owners) == pytest.approx(by_hand, abs=1e-12)


def test_the_order_of_named_examples_does_not_matter() -> None:
    values, names = np.random.default_rng(4).normal(size=30), [f"{place}" for place in range(30)]
    order = np.random.default_rng(5).permutation(30)
    shuffled, their_names = values[order], [names[place] for place in order]
    assert mean_interval(shuffled.tolist(), their_names) == mean_interval(values.tolist(), names)
    by_median = bootstrap_interval(lambda places: float(np.median(shuffled[places])), their_names)
    assert by_median == bootstrap_interval(lambda places: float(np.median(values[places])), names)


def test_too_little_has_no_interval() -> None:
    assert mean_interval([1.0]) is None
    assert mean_interval([]) is None
    assert mean_interval([1.0, 2.0], ["a", "a"]) is None
    assert bootstrap_interval(lambda places: 0.0, 1) is None
    assert bootstrap_interval(lambda places: None, 10) is None
    half_defined = bootstrap_interval(lambda places: 1.0 if 0 in places else None, 10)
    assert half_defined == (1.0, 1.0)


def test_the_percentile_interval_of_a_known_sample() -> None:
    assert percentile_interval(list(range(101))) == (2.5, 97.5)
