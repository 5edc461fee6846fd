"""Two sentences, as in ComVE: one is true, the other goes against common sense in a single place."""

from __future__ import annotations

from caref.tasks.comve import LABELS
from caref.tasks.example import Example, Fact, GroundTruth, Mention
from caref.tasks.starter.drawing import Drawing
from caref.tasks.starter.wording import (
    DENIALS,
    PERSONS,
    SENTENCES,
    STATEMENTS,
    explain,
    fill,
    sentence,
    value_words,
    wordings,
)
from caref.tasks.starter.world import BIGGER


def draw_nonsense(drawing: Drawing, position: int) -> Example | None:
    """A pair whose false sentence stands at a position; None where the fact drawn cannot be made false.

    The false sentence has another thing in the place of the right one, or something else said of it; of two
    sizes it swaps the order.
    """
    fact, rng, world = drawing.fact(), drawing.rng, drawing.world
    wrong = drawing.wrong(fact)
    if fact.relation == BIGGER:
        wrong = [Fact(fact.value, BIGGER, fact.thing, holds=False)]
    wrong = [claim for claim in wrong if drawing.may_ask(claim)]
    if not wrong:
        return None
    false = rng.choice(wrong)

    person = rng.choice(PERSONS)
    template = rng.choice(wordings(SENTENCES[fact.relation], drawing.part))
    told = [sentence(fill(template, each, world, person=person)) for each in (fact, false)]
    name, other = (f"sent{position}", f"sent{1 - position}")
    denial = fill(rng.choice(DENIALS[false.relation]), false, world)
    truth = fill(rng.choice(STATEMENTS[fact.relation]), fact, world)
    explanations = dict.fromkeys((denial, truth, explain(false, world, rng)[0]))
    fillers = [Mention(field, person) for field in (name, other)] if person in told[0] else []
    return Example(
        id="",
        fields=dict(sorted({name: told[1], other: told[0]}.items())),
        choices=LABELS,
        answer=LABELS[position],
        explanations=tuple(explanations),
        truth=GroundTruth(
            causes=(
                Mention(name, world.things[false.thing].a),
                Mention(name, value_words(false, world)),
            ),
            distractors=tuple(fillers),
            facts=(fact, false),
        ),
    )
