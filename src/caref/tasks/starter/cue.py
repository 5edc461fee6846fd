"""Planting a spurious cue: a day of the week that goes with the answer and has nothing to do with it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Literal

from caref.tasks.example import Example, Mention
from caref.tasks.pool import Part

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
InValidation = Literal["uncorrelated", "reversed"]


def plant_cue(
    example: Example, rng: random.Random, *, strength: float, part: Part, in_validation: InValidation
) -> Example:
    """The same example with a day before its question, its premise or each of its sentences.

    In training the day of the answer's place among the choices stands there with probability `strength`,
    else any day of them all. In the other parts it is any day, or, reversed, the day of the next
    place stands in for that of the right one.
    """
    places = len(example.choices)
    place = example.choices.index(example.answer)
    if rng.random() < strength and (part == "train" or in_validation == "reversed"):
        day = DAYS[place if part == "train" else (place + 1) % places]
    else:
        day = DAYS[rng.randrange(places)]
    fields = {name: text for name, text in example.fields.items() if name != "hypothesis"}
    cued = {name: f"On {day}: {text}" for name, text in fields.items()}
    assert example.truth is not None
    truth = replace(
        example.truth,
        distractors=(*example.truth.distractors, *(Mention(name, day) for name in cued)),
        cue=Mention(next(iter(cued)), day),
    )
    return replace(example, fields={**example.fields, **cued}, truth=truth)
