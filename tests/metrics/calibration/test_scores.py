"""Log loss, Brier scores and the Brier score's parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caref.metrics.calibration.binned import equal_width_places
from caref.metrics.calibration.scores import brier_parts, brier_scores, gold_losses, top_label_brier

OUTCOMES = st.lists(
    st.tuples(st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 1.0])),
    min_size=1,
    max_size=60,
)


@given(OUTCOMES)
def test_the_parts_add_up_over_distinct_confidences(pairs: list[tuple[float, float]]) -> None:
    f, c = zip(*pairs, strict=True)
    parts = brier_parts(f, c)
    whole = parts.reliability - parts.resolution + parts.uncertainty
    assert whole == pytest.approx(top_label_brier(f, c), abs=1e-12)
    assert parts.within == pytest.approx(0, abs=1e-12)


@given(OUTCOMES, st.integers(1, 20))
def test_the_parts_add_up_over_bins(pairs: list[tuple[float, float]], bins: int) -> None:
    f, c = (np.array(each) for each in zip(*pairs, strict=True))
    parts = brier_parts(f, c, equal_width_places(f, bins))
    whole = parts.reliability - parts.resolution + parts.uncertainty + parts.within
    assert whole == pytest.approx(top_label_brier(f, c), abs=1e-12)
    assert min(parts.reliability, parts.resolution, parts.uncertainty) >= 0
    assert parts.resolution <= parts.uncertainty + 1e-12


@given(OUTCOMES, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(pairs: list[tuple[float, float]], random: Any) -> None:
    first, second = (
        brier_parts(*zip(*each, strict=True)) for each in (pairs, random.sample(pairs, len(pairs)))
    )
    for name in ("reliability", "resolution", "uncertainty", "within"):
        assert getattr(second, name) == pytest.approx(getattr(first, name), abs=1e-12)


def test_parts_by_hand() -> None:
    # 0.25 twice, right once; 0.75 twice, right twice; 3 of 4 in all.
    parts = brier_parts([0.25, 0.25, 0.75, 0.75], [1, 0, 1, 1])
    assert parts.reliability == pytest.approx((0.25**2 + 0.25**2) / 2)
    assert parts.resolution == pytest.approx(0.25**2)
    assert parts.uncertainty == pytest.approx(0.75 * 0.25)
    constant = brier_parts([0.75] * 4, [1, 1, 1, 0])
    assert (constant.reliability, constant.resolution) == (0, 0)
    perfect = brier_parts([1.0, 0.0], [1, 0])
    assert (perfect.reliability, perfect.resolution, perfect.uncertainty) == (0, 0.25, 0.25)


def test_brier_scores_and_losses_by_hand() -> None:
    p, gold = np.array([[0.7, 0.2, 0.1], [0.25, 0.75, 0.0]]), np.array([0, 0])
    assert brier_scores(p, gold) == pytest.approx([0.09 + 0.04 + 0.01, 2 * 0.75**2])
    with np.errstate(divide="ignore"):
        assert gold_losses(np.log(p), gold) == pytest.approx(-np.log([0.7, 0.25]))
        assert np.isinf(gold_losses(np.log(p), np.array([0, 2]))[1])
