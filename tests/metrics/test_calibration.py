"""The calibration of candidates' probabilities, against closed forms, loops and simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caref.errors import CarefError
from caref.generation.prediction import Prediction
from caref.metrics.calibration import Calibration, calibration_error, null_calibration_errors

MakePrediction = Callable[..., Prediction]

UNIT = st.floats(0, 1)
OUTCOMES = st.lists(st.tuples(UNIT, st.sampled_from([0.0, 1.0])), min_size=1, max_size=60)


def by_loops(pairs: list[tuple[float, float]], bins: int) -> float:
    """The definition, one bin after the other."""
    total = 0.0
    for place in range(bins):
        low, high = place / bins, (place + 1) / bins
        last = place == bins - 1
        inside = [(f, c) for f, c in pairs if low <= f and (f < high or (last and f <= 1))]
        if inside:
            accuracy = sum(c for _, c in inside) / len(inside)
            confidence = sum(f for f, _ in inside) / len(inside)
            total += len(inside) / len(pairs) * abs(accuracy - confidence)
    return total


def values(predictions: list[Prediction], **settings: int) -> dict[str, Any]:
    return dict(Calibration(**settings).compute(predictions).values)


@pytest.mark.parametrize(
    ("confidences", "correct", "bins", "expected"),
    [
        ([1.0], [1.0], 15, 0.0),
        ([1.0], [0.0], 15, 1.0),
        ([0.0], [0.0], 15, 0.0),
        ([0.0, 0.0], [1.0, 0.0], 15, 0.5),
        ([0.5] * 4, [1.0, 1.0, 0.0, 0.0], 15, 0.0),
        ([0.8] * 10, [1.0] * 6 + [0.0] * 4, 15, 0.2),
        # On an edge a confidence belongs to the bin above: alone there, its gap is not offset.
        ([0.49, 0.5], [1.0, 0.0], 2, (0.51 + 0.5) / 2),
        ([0.5, 0.51], [1.0, 0.0], 2, 0.005),
        # The last bin holds 1 too.
        ([0.9, 1.0], [1.0, 0.0], 2, 0.45),
        ([0.2, 0.9], [1.0, 0.0], 1, 0.05),
    ],
)
def test_closed_forms(confidences: list[float], correct: list[float], bins: int, expected: float) -> None:
    assert calibration_error(confidences, correct, bins=bins) == pytest.approx(expected, abs=1e-12)


@given(OUTCOMES, st.integers(1, 30))
def test_the_error_is_that_of_loops_and_within_its_range(pairs: list[tuple[float, float]], bins: int) -> None:
    error = calibration_error([f for f, _ in pairs], [c for _, c in pairs], bins=bins)
    assert error == pytest.approx(by_loops(pairs, bins), abs=1e-12)
    assert 0 <= error <= 1


@pytest.mark.parametrize("bins", [1, 2, 7, 15, 22, 49, 100])
def test_every_edge_belongs_to_the_bin_above(bins: int) -> None:
    for place in range(bins):
        edge, above, below = place / bins, (place + 0.5) / bins, math.nextafter(place / bins, 0.0)
        # Of opposite outcomes: in one bin the gaps offset each other, in two they add up.
        together = calibration_error([edge, above], [1.0, 0.0], bins=bins)
        assert together == pytest.approx(abs(1 - edge - above) / 2, abs=1e-12)
        if place:
            apart = calibration_error([edge, below], [1.0, 0.0], bins=bins)
            assert apart == pytest.approx((1 - edge + below) / 2, abs=1e-12)


@given(OUTCOMES, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(pairs: list[tuple[float, float]], random: Any) -> None:
    shuffled = random.sample(pairs, len(pairs))
    first, second = ([f for f, _ in each] for each in (pairs, shuffled))
    assert calibration_error(second, [c for _, c in shuffled]) == pytest.approx(
        calibration_error(first, [c for _, c in pairs]), abs=1e-12
    )
    drawn, again = (null_calibration_errors(each, draws=5) for each in (first, second))
    assert again.tolist() == drawn.tolist()


def simulated(seed: int, right: Callable[[Any], Any], n: int = 350) -> tuple[float, float]:
    """The calibration error and the null's 95 % quantile, `right` giving the chance of being right."""
    generator = np.random.default_rng(seed)
    confidences = generator.uniform(0.4, 1.0, n)
    correct = (generator.random(n) < right(confidences)).astype(float)
    error = calibration_error(confidences.tolist(), correct.tolist())
    return error, float(np.quantile(null_calibration_errors(confidences.tolist(), draws=200), 0.95))


def test_perfectly_calibrated_predictions_lie_within_the_null_band() -> None:
    inside = [error <= band for error, band in (simulated(seed, lambda f: f) for seed in range(1, 301))]
    # 0.95 with a standard error of 0.013, the quantile's own noise aside.
    assert 0.90 <= np.mean(inside) <= 0.985


def test_overconfident_predictions_lie_above_it() -> None:
    outside = [error > band for error, band in (simulated(seed, lambda f: f - 0.15) for seed in range(20))]
    assert all(outside)


def test_what_the_null_is() -> None:
    assert null_calibration_errors([0.0, 1.0, 1.0]).tolist() == [0.0] * 1000
    single = null_calibration_errors([0.75], draws=4000)
    assert set(single.tolist()) == {0.25, 0.75}
    assert single.mean() == pytest.approx(2 * 0.75 * 0.25, abs=0.02)
    # n equal confidences: the mean distance of a binomial share from its mean.
    shares = [math.comb(20, k) * 0.7**k * 0.3 ** (20 - k) * abs(k / 20 - 0.7) for k in range(21)]
    assert null_calibration_errors([0.7] * 20, draws=4000).mean() == pytest.approx(sum(shares), rel=0.05)


def test_the_values_by_hand(make_prediction: MakePrediction) -> None:
    predictions = [
        make_prediction(label_probabilities={"Bank ": 0.7, "boat": 0.2, "milk": 0.1}),
        make_prediction(id="2", label_probabilities={"bank": 0.3, "boat": 0.6, "milk": 0.1}),
        make_prediction(id="3"),
    ]
    result = Calibration().compute(predictions)
    expected = {
        "calibration_error": (0.3 + 0.6) / 2,
        "nll": -(math.log(0.7) + math.log(0.3)) / 2,
        "brier": ((0.09 + 0.04 + 0.01) + (0.49 + 0.36 + 0.01)) / 2,
        "n": 3,
        "n_scored": 2,
        "n_unscored": 1,
        "n_gold": 2,
    }
    assert {name: result.values[name] for name in expected} == pytest.approx(expected)
    null = null_calibration_errors([0.7, 0.6])
    assert result.values["calibration_error_expected"] == pytest.approx(null.mean())
    assert result.values["calibration_error_95"] == pytest.approx(np.quantile(null, 0.95))
    assert result.per_example["candidate_confidence"] == [0.7, 0.6, None]
    assert result.per_example["candidate_correct"] == [1.0, 0.0, None]
    assert result.per_example["brier"] == pytest.approx([0.14, 0.86, None])
    assert (result.fingerprint, result.notes) == ({"bins": 15}, {})


def test_the_band_is_the_mean_and_the_95_percent_quantile(make_prediction: MakePrediction) -> None:
    confidences = [0.5 + place / 100 for place in range(40)]
    found = values([make_prediction(label_probabilities={"bank": f, "boat": 1 - f}) for f in confidences])
    null = np.sort(null_calibration_errors(confidences))
    assert found["calibration_error_expected"] == pytest.approx(null.mean())
    assert null[940] < found["calibration_error_95"] < null[960]


def test_the_confidence_is_the_likeliest_candidates_and_so_is_the_answer(
    make_prediction: MakePrediction,
) -> None:
    """Generated: the gold answer, at 0.3. Likeliest: another one, at 0.7, and wrong."""
    p = {"bank": 0.3, "boat": 0.7}
    generated = make_prediction(label_probabilities=p, confidence=0.3, confidence_source="candidates")
    broken = make_prediction(
        id="2", label="??", broken=True, label_probabilities=p, confidence=0.9, confidence_source="generated"
    )
    assert generated.correct
    for predictions in ([generated], [broken], [generated, broken]):
        assert values(predictions)["calibration_error"] == pytest.approx(0.7)
        assert values(predictions)["n_scored"] == len(predictions)


def test_bins_are_a_setting(make_prediction: MakePrediction) -> None:
    predictions = [
        make_prediction(label_probabilities={"bank": 0.9, "boat": 0.1}),
        make_prediction(id="2", label_probabilities={"boat": 0.6, "bank": 0.4}),
    ]
    assert values(predictions, bins=15)["calibration_error"] == pytest.approx((0.1 + 0.6) / 2)
    assert values(predictions, bins=1)["calibration_error"] == pytest.approx((0.6 - 0.1) / 2)
    assert Calibration(bins=3).compute(predictions).fingerprint == {"bins": 3}
    with pytest.raises(CarefError, match="bins must be at least 1, got 0"):
        Calibration(bins=0)


@pytest.mark.parametrize(
    ("p", "nll", "brier"),
    [
        ({"bank": 1.0, "boat": 0.0}, 0.0, 0.0),
        ({"bank": 0.25, "a": 0.25, "b": 0.25, "c": 0.25}, math.log(4), 0.75),
        ({"bank": 1.0}, 0.0, 0.0),
    ],
)
def test_scores_of_certain_and_constant_predictions(
    make_prediction: MakePrediction, p: dict[str, float], nll: float, brier: float
) -> None:
    found = values([make_prediction(label_probabilities=p)])
    assert (found["nll"], found["brier"]) == pytest.approx((nll, brier))


def test_a_probability_of_zero_is_known_by_its_log_probability_or_has_no_nll(
    make_prediction: MakePrediction,
) -> None:
    p = {"bank": 0.0, "boat": 1.0}
    told = make_prediction(label_probabilities=p, label_log_probs_sum={"bank": -1000.0, "boat": -1.0})
    assert values([told])["nll"] == pytest.approx(999.0)
    result = Calibration().compute([told, make_prediction(id="2", label_probabilities=p)])
    assert result.values["nll"] is None
    assert result.notes == {"nll": "infinite: a gold answer has probability 0"}
    assert result.values["brier"] == 2.0


def test_a_gold_answer_outside_the_candidates_has_no_score(make_prediction: MakePrediction) -> None:
    outside = make_prediction(label_probabilities={"milk": 0.4, "boat": 0.6})
    result = Calibration().compute([outside])
    assert result.values["calibration_error"] == pytest.approx(0.6)
    assert (result.values["nll"], result.values["brier"], result.values["n_gold"]) == (None, None, 0)
    assert set(result.notes) == {"nll", "brier"}
    assert result.notes["nll"] == "no prediction has its gold answer among the candidates"
    inside = make_prediction(id="2", label_probabilities={"bank": 1.0})
    assert values([outside, inside])["brier"] == 0


def test_the_gold_answer_in_its_own_letters_comes_first(make_prediction: MakePrediction) -> None:
    assert values([make_prediction(label_probabilities={"BANK": 0.25, "bank": 0.75})])["brier"] == 0.125


def test_without_candidates_all_is_undefined(make_prediction: MakePrediction) -> None:
    result = Calibration().compute([make_prediction(), make_prediction(id="2", label_probabilities={})])
    names = ("calibration_error", "calibration_error_expected", "calibration_error_95", "nll", "brier")
    assert [result.values[name] for name in names] == [None] * 5
    assert result.notes == dict.fromkeys(names, "no prediction carries candidate probabilities")
    assert (result.values["n_scored"], result.values["n_unscored"]) == (0, 2)
    assert result.per_example["brier"] == [None, None]


@pytest.mark.parametrize("p", [{"bank": 0.3, "boat": 0.3}, {"bank": 1.2, "boat": -0.2}])
def test_what_is_no_distribution_is_refused(make_prediction: MakePrediction, p: dict[str, float]) -> None:
    with pytest.raises(CarefError, match="prediction '1': label_probabilities must be at least 0 and add up"):
        Calibration().compute([make_prediction(label_probabilities=p)])


def test_rounded_probabilities_are_taken(make_prediction: MakePrediction) -> None:
    found = values([make_prediction(label_probabilities={"bank": 1.004, "boat": 0.0})])
    assert (found["calibration_error"], found["nll"]) == (0.0, 0.0)


@given(st.lists(st.lists(st.floats(0.01, 1), min_size=2, max_size=5), min_size=1, max_size=20))
def test_all_values_lie_in_their_ranges(weights: list[list[float]]) -> None:
    predictions = [
        Prediction(
            id=str(place),
            input="",
            text="",
            label="0",
            explanation="",
            broken=False,
            gold_label="0",
            gold_explanations=("",),
            label_probabilities={str(k): weight / sum(row) for k, weight in enumerate(row)},
        )
        for place, row in enumerate(weights)
    ]
    found = values(predictions)
    assert 0 <= found["calibration_error"] <= 1
    assert 0 <= found["calibration_error_expected"] <= 1
    assert 0 <= found["calibration_error_95"] <= 1
    assert 0 <= found["brier"] <= 2
    assert found["nll"] >= 0
