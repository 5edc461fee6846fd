"""Questions with several choices, as in CoS-E and ECQA: one is true of a thing, the others are false."""

from __future__ import annotations

from caref.tasks.example import Example, Fact, GroundTruth, Mention
from caref.tasks.starter.drawing import Drawing
from caref.tasks.starter.wording import ask, explain, value_words


def draw_choice(drawing: Drawing, position: int, *, choices: int) -> Example | None:
    """A question whose answer stands at a position; None where the fact drawn has too few false claims.

    Either a thing is given and what is true of it is asked for, or the other way round.
    """
    fact, rng, world = drawing.fact(), drawing.rng, drawing.world
    asks_thing = rng.random() < 0.5
    wrong = drawing.wrong_things(fact) if asks_thing else drawing.wrong_values(fact)
    texts = {_choice(claim, asks_thing): claim for claim in wrong}
    answer = _choice(fact, asks_thing)
    if len(texts) < choices - 1 or answer in texts:
        return None
    others = rng.sample(sorted(texts), choices - 1)
    listed = (*others[:position], answer, *others[position:])

    question, person = ask(fact, world, rng, asks_thing=asks_thing, part=drawing.part)
    given = value_words(fact, world) if asks_thing else world.things[fact.thing].a
    fillers = [Mention("question", person)] if person in question else []
    return Example(
        id="",
        fields={"question": question},
        choices=listed,
        answer=answer,
        explanations=explain(fact, world, rng),
        truth=GroundTruth(
            causes=(Mention("question", given), Mention("choices", answer)),
            distractors=(*fillers, *(Mention("choices", other) for other in others)),
            facts=(fact, *(texts[other] for other in others)),
        ),
    )


def _choice(fact: Fact, asks_thing: bool) -> str:
    """What stands among the choices: a thing's name alone, or what is said of one."""
    return fact.thing if asks_thing else fact.value
