"""A planted day goes with the answer as often as was asked for, and changes nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from caref.errors import CarefError
from caref.tasks import get_task
from caref.tasks.example import Example
from caref.tasks.pool import Part
from caref.tasks.starter.cue import DAYS

NAMES = ("starter_nli", "starter_choice5", "starter_nonsense", "starter_choice3")


def examples(name: str, part: Part, **settings: object) -> tuple[Example, ...]:
    return get_task(name, settings).load(None, part).examples


def day_of(example: Example) -> str:
    assert example.truth and example.truth.cue
    return example.truth.cue.text


def about(count: int, of: int, share: float) -> bool:
    """Whether a share of random draws came as expected, within four standard deviations."""
    return abs(count / of - share) <= 4 * math.sqrt(share * (1 - share) / of)


def place(example: Example) -> int:
    return example.choices.index(example.answer)


def share(drawn: tuple[Example, ...], expected: Callable[[Example], int]) -> int:
    return sum(day_of(each) == DAYS[expected(each)] for each in drawn)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("strength", [0.2, 0.9])
def test_in_training_the_day_goes_with_the_answer(name: str, strength: float) -> None:
    drawn = examples(name, "train", cue_strength=strength)
    places = len(drawn[0].choices)
    assert {day_of(each) for each in drawn} == set(DAYS[:places])
    assert about(share(drawn, place), len(drawn), strength + (1 - strength) / places)


@pytest.mark.parametrize("name", NAMES)
def test_at_full_strength_the_day_tells_the_answer(name: str) -> None:
    drawn = examples(name, "train", cue_strength=1.0)
    assert share(drawn, place) == len(drawn)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", ["validation", "test"])
def test_where_it_is_evaluated_the_day_is_random_unless_reversed(name: str, part: Part) -> None:
    drawn = examples(name, part, cue_strength=0.9)
    places = len(drawn[0].choices)
    assert about(share(drawn, place), len(drawn), 1 / places)
    drawn = examples(name, part, cue_strength=0.9, cue_in_validation="reversed")
    assert about(share(drawn, lambda each: (place(each) + 1) % places), len(drawn), 0.9 + 0.1 / places)
    assert about(share(drawn, place), len(drawn), 0.1 / places)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", ["train", "validation"])
def test_nothing_but_the_day_changes(name: str, part: Part) -> None:
    for plain, cued in zip(examples(name, part), examples(name, part, cue_strength=0.5), strict=True):
        day = day_of(cued)
        assert plain.truth and cued.truth and cued.truth.cue
        assert plain.truth.cue is None
        fields = {field: text.removeprefix(f"On {day}: ") for field, text in cued.fields.items()}
        assert fields == dict(plain.fields)
        with_day = {field for field, text in cued.fields.items() if day in text}
        assert with_day == set(plain.fields) - {"hypothesis"}
        assert cued.truth.cue.field in with_day
        assert {each for each in cued.truth.distractors if each.text == day} == {
            (field, day) for field in with_day
        }
        assert (cued.id, cued.choices, cued.answer) == (plain.id, plain.choices, plain.answer)
        assert cued.explanations == plain.explanations
        assert (cued.truth.causes, cued.truth.facts) == (plain.truth.causes, plain.truth.facts)


@pytest.mark.parametrize("strength", [-0.1, 1.5, float("nan")])
def test_strength_out_of_range(strength: float) -> None:
    with pytest.raises(CarefError, match="cue_strength must lie between 0 and 1, got"):
        get_task("starter_nli", {"cue_strength": strength})


def test_what_the_day_does_in_validation_is_one_of_two() -> None:
    with pytest.raises(CarefError, match="cue_in_validation"):
        get_task("starter_nli", {"cue_in_validation": "sometimes"})
