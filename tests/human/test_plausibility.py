from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from caref.human.agreement import agreement
from caref.human.plausibility import plausibility, plausibility_by_label, question_means
from caref.human.ratings import RatedQuestion, read_ratings

PUBLISHED = """
ecqa base 360 223 0.4926 73.98 26.56 177 0.3222 25.52 23.70
ecqa large 360 204 0.4222 69.72 29.02 193 0.3815 30.28 28.97
ecqa 3b 360 222 0.4889 69.54 30.21 185 0.3519 34.23 29.65
ecqa gpt3 360 200 0.4074 70.28 25.56 123 0.1222 45.06 27.35
esnli base 360 253 0.6037 78.06 27.28 286 0.7259 16.76 29.08
esnli large 360 262 0.6370 78.46 29.32 245 0.5741 32.69 36.51
esnli 3b 360 263 0.6407 78.73 27.92 258 0.6222 41.60 39.40
esnli gpt3 310 222 0.6215 74.37 32.00 204 0.5441 42.44 38.18
comve base 360 226 0.5037 77.84 23.97 289 0.7370 13.80 24.00
comve large 360 238 0.5481 77.93 24.02 260 0.6296 25.59 31.76
comve 3b 360 237 0.5444 76.05 24.52 230 0.5185 33.40 32.37
comve gpt3 350 252 0.6267 77.14 26.12 207 0.4552 42.16 34.19
"""
"""Task, system, items; then gold and generated: unanimous, kappa, mean and standard deviation."""


@cache
def _published(folder: Path) -> tuple[RatedQuestion, ...]:
    return read_ratings(folder)


@pytest.mark.parametrize("line", PUBLISHED.strip().splitlines())
def test_the_published_figures_digit_for_digit(human_eval: Path, line: str) -> None:
    task, system, *expected = line.split()
    own = [each for each in _published(human_eval) if (each.task, each.system) == (task, system)]
    found = [str(len(own))]
    for ratings in (
        [each.gold_explanation.ratings for each in own],
        [each.generated_explanation.ratings for each in own],
    ):
        agreed, plausible = agreement(ratings, draws=2).values, plausibility(ratings, draws=2).values
        found += [
            str(agreed["unanimous"]),
            f"{agreed['randolph_kappa']:.4f}",
            f"{plausible['plausibility']:.2f}",
            f"{plausible['plausibility_std']:.2f}",
        ]
    assert found == expected


def test_by_hand() -> None:
    result = plausibility([(3, 3, 3), (0, 1, 2), (0, 0, 0), (1, 1, 1)])
    assert question_means([(3, 3, 3), (0, 1, 2)]) == pytest.approx([1, 1 / 3])
    assert result.values["plausibility"] == pytest.approx(100 * (1 + 1 / 3 + 0 + 1 / 3) / 4)
    deviation = (((1 - 5 / 12) ** 2 + 2 * (1 / 3 - 5 / 12) ** 2 + (5 / 12) ** 2) / 4) ** 0.5
    assert result.values["plausibility_std"] == pytest.approx(100 * deviation)
    assert result.values["plausibility_standard_error"] == pytest.approx(100 * deviation / 2)
    low, high = result.intervals["plausibility"]
    assert low < 100 * 5 / 12 < high


def test_of_nothing_and_of_one() -> None:
    nothing = plausibility([])
    assert nothing.values["plausibility"] is None
    assert nothing.notes["plausibility"] == "no ratings"
    one = plausibility([(3, 3, 2)])
    assert one.values["plausibility_std"] == 0
    assert one.intervals == {}


def test_labels(human_eval: Path) -> None:
    own = [each for each in _published(human_eval) if (each.task, each.system) == ("esnli", "base")]
    by_label = plausibility_by_label(
        [each.gold_explanation.ratings for each in own], [each.gold_label for each in own]
    )
    assert list(by_label) == ["contradiction", "entailment", "neutral"]
    assert [result.values["n"] for result in by_label.values()] == [120, 120, 120]
    mean = sum(result.values["plausibility"] for result in by_label.values()) / 3  # type: ignore[misc]
    assert mean == pytest.approx(78.06, abs=5e-3)


def test_as_many_labels_as_questions() -> None:
    with pytest.raises(ValueError):
        plausibility_by_label([(3, 3, 3)], [])
