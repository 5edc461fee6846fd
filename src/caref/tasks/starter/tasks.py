"""The four tasks of the starter world: made, not read, and the same for ever."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from caref.tasks import commonsenseqa, comve, esnli
from caref.tasks.example import Example
from caref.tasks.pool import PARTS, Part
from caref.tasks.prompt import PromptFormat
from caref.tasks.starter.choice import draw_choice
from caref.tasks.starter.cue import InValidation, plant_cue
from caref.tasks.starter.drawing import Drawing
from caref.tasks.starter.entailment import draw_entailment
from caref.tasks.starter.nonsense import draw_nonsense
from caref.tasks.starter.world import load_world
from caref.tasks.task import Task

SIZES: dict[Part, int] = {"train": 3000, "validation": 1000, "test": 1000}


@dataclass(frozen=True, slots=True)
class Shape:
    """One of the benchmark's kinds of task.

    Attributes:
        name: The task's, after ``starter_``.
        prompts: Those of the real task.
        labels: The answers, where every example has the same.
        places: How many choices an example has.
        draw: An example whose answer stands at a place among the choices, or None where the facts drawn
            give none.
    """

    name: str
    prompts: Mapping[str, PromptFormat]
    labels: tuple[str, ...]
    places: int
    draw: Callable[[Drawing, int], Example | None]


def starter_task(
    shape: Shape,
    /,
    *,
    cue_strength: float = 0.0,
    cue_in_validation: InValidation = "uncorrelated",
    world_seed: int = 0,
) -> Task:
    """A task about the starter world.

    Args:
        shape: What its examples look like.
        cue_strength: how often, from 0 to 1, a day of the week in the training input gives the answer away
        cue_in_validation: whether that day is random where the model is evaluated, or misleads as often
        world_seed: another seed makes other examples of the same world

    Raises:
        ValueError: If the strength is out of range.
    """
    if not 0 <= cue_strength <= 1:
        raise ValueError(f"cue_strength must lie between 0 and 1, got {cue_strength}")

    def generate(part: Part) -> Iterator[Example]:
        # The cue has random numbers of its own: the examples stay the same with and without it.
        rng = random.Random(f"{shape.name}/{part}/{world_seed}/cue")
        for example in _examples(shape, part, world_seed):
            if cue_strength:
                yield plant_cue(
                    example, rng, strength=cue_strength, part=part, in_validation=cue_in_validation
                )
            else:
                yield example

    return Task(
        name=f"starter_{shape.name}",
        labels=shape.labels,
        prompts=shape.prompts,
        source="made from the packaged table of facts, caref/tasks/starter/world.yaml",
        licence="Apache-2.0",
        parts=PARTS,
        generate=generate,
    )


_CHOICE3 = Shape("choice3", commonsenseqa.PROMPTS, (), 3, functools.partial(draw_choice, choices=3))
_CHOICE5 = Shape("choice5", commonsenseqa.PROMPTS, (), 5, functools.partial(draw_choice, choices=5))
_NONSENSE = Shape("nonsense", comve.PROMPTS, comve.LABELS, 2, draw_nonsense)
_NLI = Shape("nli", esnli.PROMPTS, esnli.LABELS, 3, draw_entailment)

CHOICE3, CHOICE5, NONSENSE, NLI = (
    functools.partial(starter_task, shape) for shape in (_CHOICE3, _CHOICE5, _NONSENSE, _NLI)
)


def _examples(shape: Shape, part: Part, world_seed: int) -> Iterator[Example]:
    """The examples of a part, all different, their answers in every place equally often."""
    drawing = Drawing(load_world(), part, random.Random(f"{shape.name}/{part}/{world_seed}"))
    seen: set[tuple[object, ...]] = set()
    while len(seen) < SIZES[part]:
        example = shape.draw(drawing, len(seen) % shape.places)
        if example is None:
            continue
        asked = (*example.fields.values(), *sorted(example.choices))
        if asked not in seen:
            seen.add(asked)
            yield replace(example, id=f"{shape.name}-{part}-{len(seen)}")
