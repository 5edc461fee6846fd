"""A premise and a hypothesis, as in e-SNLI: true by a fact, false by one, or left open."""

from __future__ import annotations

from caref.tasks.esnli import LABELS
from caref.tasks.example import Example, Fact, GroundTruth, Mention
from caref.tasks.starter.drawing import Drawing
from caref.tasks.starter.wording import (
    CLAUSES,
    OPEN_CLAUSES,
    OPEN_EXPLANATIONS,
    PERSONS,
    SCENES,
    explain,
    fill,
    sentence,
    value_words,
    wordings,
)
from caref.tasks.starter.world import IS_A


def draw_entailment(drawing: Drawing, position: int) -> Example | None:
    """A pair whose label stands at a position of the labels; None where the fact drawn gives none.

    The premise names a thing. The hypothesis says something of it without its name: what is true of every
    such thing, what is false of it, or what the premise leaves open.
    """
    fact, rng, world = drawing.fact(), drawing.rng, drawing.world
    label = LABELS[position]
    if label == "contradiction":
        wrong = [claim for claim in drawing.wrong_values(fact) if drawing.may_ask(claim)]
        if not wrong:
            return None
        fact = rng.choice(wrong)
    person, friend = rng.sample(PERSONS, 2)
    scene = rng.choice(wordings(SCENES, drawing.part))
    premise = sentence(scene.format(person=person, a=world.things[fact.thing].a))
    named: tuple[Mention, ...]
    facts: tuple[Fact, ...]
    if label == "neutral":
        open_ = [each for each in OPEN_CLAUSES if drawing.may_ask(Fact(fact.thing, "open", each))]
        if not open_:
            return None
        clause = rng.choice(open_).format(person=friend)
        said, cause = f"something that {clause}", clause
        explanations = [template.format(clause=clause) for template in OPEN_EXPLANATIONS]
        rng.shuffle(explanations)
        named, facts = (), ()
    else:
        short = fact.relation == IS_A and rng.random() < 0.5
        said = fact.value if short else f"something that {fill(CLAUSES[fact.relation], fact, world)}"
        cause = value_words(fact, world)
        explanations = list(explain(fact, world, rng))
        named, facts = (Mention("premise", world.things[fact.thing].a),), (fact,)
    hypothesis = sentence(scene.format(person=person, a=said))
    return Example(
        id="",
        fields={"premise": premise, "hypothesis": hypothesis},
        choices=LABELS,
        answer=label,
        explanations=tuple(explanations),
        truth=GroundTruth(
            causes=(*named, Mention("hypothesis", cause)),
            distractors=(Mention("premise", person), Mention("hypothesis", person)),
            facts=facts,
        ),
    )
