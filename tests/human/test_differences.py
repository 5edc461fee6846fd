from __future__ import annotations

import numpy as np
import pytest

from caref.human.association import Scopes
from caref.human.differences import Bin, bins, system_pairs
from caref.human.resampling import drawn_places


def test_bins_by_hand() -> None:
    scopes = Scopes(["esnli"] * 4, ["base"] * 4)
    scores = np.array([0.0, 0.5, 3.0, 3.0])
    ratings = np.array([1 / 3, 0.0, 1.0, 1 / 3])
    small, large = bins(scores, ratings, scopes, [], edges=(0, 1, np.inf))
    # 0.5 above 0: wrong. The two threes are equal, and in no bin.
    assert small == Bin(0, 1, 1, 0, 0.0, None, pytest.approx(-100 / 3))
    # 3 above 0: right and tied; above 0.5: right twice.
    assert (large.low, large.high, large.pairs, large.tied, large.concordance) == (1, None, 4, 1, 1.0)
    assert large.gain == pytest.approx(100 * (2 / 3 + 0 + 1 + 1 / 3) / 4)


def test_a_difference_on_an_edge_is_in_the_upper_bin() -> None:
    found = bins(
        np.array([0.0, 1.0]), np.array([0.0, 1.0]), Scopes(["a"] * 2, ["b"] * 2), [], edges=(0, 1, 2)
    )
    assert [each.pairs for each in found] == [0, 1]
    assert (found[0].concordance, found[0].gain) == (None, None)


def test_pairs_are_of_one_data_set_and_if_asked_of_one_question() -> None:
    scores, ratings = np.arange(6.0), np.arange(6.0) / 6
    scopes = Scopes(["esnli"] * 3 + ["comve"] * 3, ["base"] * 6)
    assert sum(each.pairs for each in bins(scores, ratings, scopes, [])) == 6
    found = bins(scores, ratings, scopes, [], questions=["p", "p", "q", "p", "q", "q"])
    assert sum(each.pairs for each in found) == 2


def test_intervals_are_those_of_drawn_pairs() -> None:
    generator = np.random.default_rng(1)
    scores, ratings = generator.normal(0, 3, 40), generator.integers(0, 4, 40) / 3
    owners = [str(place // 2) for place in range(40)]
    drawn = drawn_places(owners, draws=60)
    found = bins(scores, ratings, Scopes(["a"] * 40, ["b"] * 40), drawn, edges=(0, 2, np.inf))
    for each, (low, high) in zip(found, ((0, 2), (2, np.inf)), strict=True):
        shares = []
        for places in drawn:
            pairs = [(i, j) for i in places for j in places if scores[i] > scores[j]]
            kept = [
                (i, j) for i, j in pairs if low <= scores[i] - scores[j] < high and ratings[i] != ratings[j]
            ]
            shares.append(np.mean([ratings[i] > ratings[j] for i, j in kept]))
        assert each.interval == pytest.approx(tuple(np.quantile(shares, (0.025, 0.975))))


def test_concordance_over_all_bins_is_kendalls() -> None:
    from scipy.stats import kendalltau

    generator = np.random.default_rng(2)
    scores, ratings = generator.normal(size=60), generator.permutation(60) / 60
    (found,) = bins(scores, ratings, Scopes(["a"] * 60, ["b"] * 60), [], edges=(0, np.inf))
    assert found.concordance == pytest.approx((kendalltau(scores, ratings).statistic + 1) / 2)


def test_pairs_of_systems() -> None:
    scopes = Scopes(["esnli"] * 4 + ["comve"], ["base", "base", "large", "large", "base"])
    (pair,) = system_pairs(np.array([1.0, 2.0, 4.0, 5.0, 9.0]), np.array([1.0, 0.5, 0.5, 0.5, 0.0]), scopes)
    assert (pair.task, pair.first, pair.second) == ("esnli", "large", "base")
    assert (pair.metric, pair.plausibility) == pytest.approx((3.0, -25.0))
    assert not pair.agree
