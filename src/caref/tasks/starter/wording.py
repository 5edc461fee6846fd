"""How the world is put into words: statements, questions and sentences, several of each.

Braces are slots: ``{a}`` the thing with its article, ``{value}`` what is said of it, ``{b}`` the smaller
of two things, names of persons. The last wording of a list of questions, sentences or scenes is kept for
validation and test.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from caref.tasks.example import Fact
from caref.tasks.pool import Part
from caref.tasks.starter.world import BIGGER, World

PERSONS = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Henry", "Ida", "Jonas", "Lena", "Max")

STATEMENTS = {
    "is a": ("{a} is {value}", "{a} counts as {value}"),
    "used to": ("{a} is used to {value}", "people use {a} to {value}", "you can use {a} to {value}"),
    "made of": ("{a} is made of {value}", "people make {a} out of {value}"),
    "found": ("{a} is found {value}", "you can find {a} {value}", "you would look for {a} {value}"),
    "has": ("{a} has {value}", "{a} comes with {value}"),
    "can": ("{a} can {value}", "{a} is able to {value}"),
    "needs": ("{a} needs {value}", "{a} depends on {value}"),
    "is": ("{a} is {value}", "it is normal for {a} to be {value}"),
    "causes": ("{a} causes {value}", "{a} leads to {value}"),
    "eats": ("{a} eats {value}", "{a} feeds on {value}"),
    "bigger than": ("{a} is bigger than {b}", "{b} is smaller than {a}"),
}

DENIALS = {
    "is a": ("{a} is not {value}", "nobody would call {a} {value}"),
    "used to": ("{a} is not used to {value}", "people do not use {a} to {value}"),
    "made of": ("{a} is not made of {value}", "{a} does not consist of {value}"),
    "found": ("{a} is not found {value}", "you would not look for {a} {value}"),
    "has": ("{a} does not have {value}", "{a} comes without {value}"),
    "can": ("{a} cannot {value}", "{a} is not able to {value}"),
    "needs": ("{a} does not need {value}", "{a} can do without {value}"),
    "is": ("{a} is not {value}", "it is not normal for {a} to be {value}"),
    "causes": ("{a} does not cause {value}", "{a} does not lead to {value}"),
    "eats": ("{a} does not eat {value}", "{a} does not feed on {value}"),
    "bigger than": ("{a} is not bigger than {b}", "{b} is not smaller than {a}"),
}

ASK_VALUE = {
    "is a": ("what is {a}?", "what kind of thing is {a}?", "what does {a} count as?"),
    "used to": ("what is {a} used to do?", "what do people do with {a}?", "what would {person} do with {a}?"),
    "made of": (
        "what is {a} made of?",
        "out of what do people make {a}?",
        "what do people need to make {a}?",
    ),
    "found": (
        "where is {a} found?",
        "where would {person} look for {a}?",
        "where does {a} belong?",
    ),
    "has": ("what does {a} have?", "which of these belongs to {a}?", "what comes with {a}?"),
    "can": ("what can {a} do?", "what is {a} able to do?", "which of these could {a} do?"),
    "needs": ("what does {a} need?", "what does {a} depend on?"),
    "is": ("what is {a} like?", "which word fits {a}?", "how would {person} describe {a}?"),
    "causes": ("what does {a} cause?", "what does {a} lead to?"),
    "eats": ("what does {a} eat?", "what does {a} feed on?", "what would {person} feed {a}?"),
    "bigger than": ("what is smaller than {a}?", "which of these is smaller than {a}?"),
}

ASK_THING = {
    "is a": ("which one is {value}?", "which of these is {value}?", "what counts as {value}?"),
    "used to": (
        "what is used to {value}?",
        "{person} wants to {value}: what does {person} use?",
        "what would {person} use to {value}?",
    ),
    "made of": ("what is made of {value}?", "which of these is made of {value}?"),
    "found": ("what is found {value}?", "what would {person} look for {value}?"),
    "has": ("what has {value}?", "which of these has {value}?", "what comes with {value}?"),
    "can": ("what can {value}?", "which of these can {value}?", "what is able to {value}?"),
    "needs": ("what needs {value}?", "which of these needs {value}?", "what depends on {value}?"),
    "is": ("which one is {value}?", "which of these is {value}?", "what would {person} call {value}?"),
    "causes": ("what causes {value}?", "what leads to {value}?"),
    "eats": ("what eats {value}?", "which of these eats {value}?", "what feeds on {value}?"),
    "bigger than": ("what is bigger than {b}?", "which of these is bigger than {b}?"),
}

SENTENCES = {
    "is a": ("{person} says that {a} is {value}", "{a} counts as {value}"),
    "used to": ("{person} used {a} to {value}", "people use {a} to {value}", "{a} is used to {value}"),
    "made of": ("{person} says that {a} is made of {value}", "{a} is made of {value}"),
    "found": ("you can find {a} {value}", "{person} looked for {a} {value}", "{a} is found {value}"),
    "has": ("{person} says that {a} has {value}", "{a} has {value}"),
    "can": ("{person} knows that {a} can {value}", "{a} can {value}"),
    "needs": ("{person} says that {a} needs {value}", "{a} needs {value}"),
    "is": ("{person} says that {a} is {value}", "{a} is {value}"),
    "causes": ("{person} says that {a} causes {value}", "{a} causes {value}"),
    "eats": ("{person} saw how {a} eats {value}", "{a} eats {value}"),
    "bigger than": ("{person} says that {a} is bigger than {b}", "{a} is bigger than {b}"),
}

CLAUSES = {
    "is a": "is {value}",
    "used to": "is used to {value}",
    "made of": "is made of {value}",
    "found": "is found {value}",
    "has": "has {value}",
    "can": "can {value}",
    "needs": "needs {value}",
    "is": "is {value}",
    "causes": "causes {value}",
    "eats": "eats {value}",
    "bigger than": "is bigger than {b}",
}
"""What follows ``something that``."""

SCENES = (
    "{person} is looking at {a}",
    "{person} talks about {a}",
    "{person} has a picture of {a}",
    "{person} dreams of {a}",
)

OPEN_CLAUSES = (
    "looks funny to {person}",
    "makes {person} happy",
    "makes {person} laugh",
    "bores {person}",
    "surprises {person}",
    "reminds {person} of a friend",
    "seems beautiful to {person}",
    "was in a dream of {person}",
)
"""What follows ``something that`` and nothing decides."""

OPEN_EXPLANATIONS = ("we do not know if it {clause}", "nothing says that it {clause}")

SETTINGS = (
    "",
    "",
    "",
    "{person} asks: ",
    "in the evening {person} wonders: ",
    "{person} asks a friend: ",
    "at breakfast {person} wonders: ",
)
"""What may stand before a question and has no bearing on it."""


def wordings(words: Sequence[str], part: Part | None) -> Sequence[str]:
    """Those that a part may use: the last one is never seen in training, nor where there is no part."""
    return words[:-1] if part in (None, "train") and len(words) > 1 else words


def fill(template: str, fact: Fact, world: World, **slots: str) -> str:
    """A template about a fact in words.

    Example:
        >>> from caref.tasks.starter.world import load_world
        >>> fill("{a} is used to {value}", Fact("knife", "used to", "cut bread"), load_world())
        'a knife is used to cut bread'
    """
    slots["a"] = world.things[fact.thing].a
    if fact.relation == BIGGER:
        slots["b"] = world.things[fact.value].a
    return template.format(value=fact.value, **slots)


def explain(fact: Fact, world: World, rng: random.Random) -> tuple[str, ...]:
    """Every wording of a fact as a statement, or as a denial where it does not hold, in random order."""
    templates = list((STATEMENTS if fact.holds else DENIALS)[fact.relation])
    rng.shuffle(templates)
    return tuple(fill(template, fact, world) for template in templates)


def ask(
    fact: Fact, world: World, rng: random.Random, *, asks_thing: bool, part: Part | None
) -> tuple[str, str]:
    """A question about a fact, for its thing or for what is said of it, as somebody asks it; and who that is.

    One of `SETTINGS` may stand before it. Not every question names the person.
    """
    person = rng.choice(PERSONS)
    template = rng.choice(wordings((ASK_THING if asks_thing else ASK_VALUE)[fact.relation], part))
    question = fill(template, fact, world, person=person)
    setting = "" if question.startswith(person) else rng.choice(SETTINGS).format(person=person)
    return sentence(setting + question, end=""), person


def value_words(fact: Fact, world: World) -> str:
    """What a fact says of its thing, as sentences write it: another thing with its article."""
    return world.things[fact.value].a if fact.relation == BIGGER else fact.value


def sentence(text: str, *, end: str = ".") -> str:
    """A text that begins with a capital letter and ends as a sentence does.

    Example:
        >>> sentence("a knife has a blade")
        'A knife has a blade.'
    """
    return f"{text[:1].upper()}{text[1:]}{end}"
