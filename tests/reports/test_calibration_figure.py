from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from caref.errors import CarefError
from caref.metrics.calibration.binned import reliability_bins
from caref.reports.calibration_figure import _null_band, calibration_figure


def test_a_figure_is_valid_and_the_same_for_the_same_numbers() -> None:
    svg = calibration_figure([0.9, 0.8, 0.6, 0.3], [1, 1, 0, 1])
    assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert svg == calibration_figure([0.9, 0.8, 0.6, 0.3], [1, 1, 0, 1])
    assert svg != calibration_figure([0.9, 0.8, 0.6, 0.3], [1, 1, 1, 1])
    assert not re.search("nan|dc:date", svg)
    assert ">reliability<" in svg and ">risk and coverage<" in svg


@pytest.mark.parametrize("confidences", [[0.0], [1.0], [0.5, 0.5, 0.5], [0.0, 1.0]])
def test_edges_and_ties(confidences: list[float]) -> None:
    for right in (0.0, 1.0):
        assert "nan" not in calibration_figure(confidences, [right] * len(confidences), bins=3)


def test_what_is_no_confidence_is_refused() -> None:
    with pytest.raises(CarefError):
        calibration_figure([1.5], [1])


def test_the_band_is_that_of_the_binomial() -> None:
    from scipy.stats import binom

    f = np.array([0.3] * 50 + [0.9] * 200)
    found = reliability_bins(f, np.ones(250), bins=10)
    low, high = _null_band(found, f[::-1])
    for place, (n, p) in enumerate(((50, 0.3), (200, 0.9))):
        expected = binom.ppf([0.025, 0.975], n, p) / n
        assert [low[place], high[place]] == pytest.approx(expected, abs=1.5 / n)
