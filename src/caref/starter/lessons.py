"""What the starter model is taught: pairs of input and target, in other formats than the tasks'.

Statements of the world cover every fact; exercises with choices, pairs of sentences or premises are made from
facts that the tasks keep for training alone, so nothing that a task evaluates on is ever taught.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from caref.tasks.example import Example, Fact
from caref.tasks.starter.choice import draw_choice
from caref.tasks.starter.drawing import Drawing
from caref.tasks.starter.entailment import draw_entailment
from caref.tasks.starter.nonsense import draw_nonsense
from caref.tasks.starter.wording import (
    DENIALS,
    PERSONS,
    STATEMENTS,
    ask,
    explain,
    fill,
)
from caref.tasks.starter.world import BIGGER, World


class Lesson(NamedTuple):
    """One thing to learn: what is asked, what should be said."""

    input: str
    target: str


ORDINALS = ("first", "second", "third", "fourth", "fifth")
LETTERS = "abcde"
_SIGNS = "abcdefghijklmnopqrstuvwxyz0123456789'-/()!"


class Teacher:
    """Makes lessons, kind by kind, in the proportions of `KINDS`.

    Args:
        world: What is taught.
        rng: Decides everything.
    """

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world = world
        self.rng = rng
        self.everything = Drawing(world, None, rng)
        self.exercises = Drawing(world, "train", rng)
        self._facts_of: dict[str, list[Fact]] = {}
        self._facts_saying: dict[tuple[str, str], list[Fact]] = {}
        for fact in world.facts():
            if fact.relation != BIGGER:
                self._facts_of.setdefault(fact.thing, []).append(fact)
                self._facts_saying.setdefault((fact.relation, fact.value), []).append(fact)
        self.phrases = [*world.things]
        for relation in ("used to", "found", "has", "can", "needs", "is", "made of", "eats", "causes"):
            self.phrases += world.values(relation)
        self.words = sorted({word for phrase in self.phrases for word in phrase.split()} | set(PERSONS))

    def lesson(self, kinds: Sequence[str] | None = None) -> Lesson:
        """A lesson of a random kind; `kinds` limits them."""
        names = list(kinds or KINDS)
        kind = self.rng.choices(names, [KINDS[name][1] for name in names])[0]
        made = KINDS[kind][0](self)
        return Lesson(" ".join(made.input.split()), made.target)

    def copy(self) -> Lesson:
        """Say the same words again."""
        words = " ".join(self._word() for _ in range(self.rng.randint(1, 8)))
        return Lesson(f"say: {words}", words)

    def pick(self) -> Lesson:
        """Pick a phrase out of a list, by its place or by its mark, or say where it stands."""
        rng, count = self.rng, self.rng.randint(2, 5)
        phrases = rng.sample(self.phrases, count)
        place = rng.randrange(count)
        marks = rng.choice(
            (
                [f"{ORDINALS[n]}:" for n in range(count)],
                [f"choice{n + 1}:" for n in range(count)],
                [f"({LETTERS[n]})" for n in range(count)],
                [f"{n + 1}." for n in range(count)],
            )
        )
        joint = rng.choice((" ", " ", " \\n "))
        listed = joint.join(f"{mark} {phrase}" for mark, phrase in zip(marks, phrases, strict=True))
        mark, phrase = marks[place].strip("(:.)"), phrases[place]
        match rng.randrange(3):
            case 0:
                return Lesson(f"give {mark} of {listed}", phrase)
            case 1:
                return Lesson(f"where is {phrase} in {listed}", mark)
            case _:
                word = rng.choice(phrase.split())
                return Lesson(f"find the one with {word}: {listed}", phrase)

    def describe(self) -> Lesson:
        """Much of what is true of a thing, in one go: most facts for the fewest words."""
        rng = self.rng
        thing = rng.choice(list(self._facts_of))
        facts = self._facts_of[thing]
        told = [self._statement(fact) for fact in rng.sample(facts, min(len(facts), rng.randint(2, 6)))]
        return Lesson(f"describe {self.world.things[thing].a}", ". ".join(told))

    def listing(self) -> Lesson:
        """Several things of which the same is true, or everything that one relation says of a thing."""
        rng, fact = self.rng, self.everything.fact()
        if fact.relation == BIGGER:
            return self.describe()
        if rng.random() < 0.5:
            what = f"{fact.relation} {fact.value}"
            alike = [each.thing for each in self._facts_saying[fact[1:3]]]
            return Lesson(f"list: {what}", ", ".join(rng.sample(alike, min(len(alike), 5))))
        values = [each.value for each in self._facts_of[fact.thing] if each.relation == fact.relation]
        rng.shuffle(values)
        return Lesson(f"list: {self.world.things[fact.thing].a} {fact.relation}", ", ".join(values))

    def question(self) -> Lesson:
        """A question without choices, answered in a word or in a sentence."""
        rng, fact = self.rng, self.everything.fact()
        asks_thing = rng.random() < 0.5
        asked = self.ask(fact, asks_thing=asks_thing)
        answer = fact.thing if asks_thing else fact.value
        told = self._statement(fact)
        if rng.random() < 0.5:
            return Lesson(f"question: {asked}", answer)
        return Lesson(f"answer in a sentence: {asked}", told)

    def truth(self) -> Lesson:
        """Is it true, and why."""
        rng, fact = self.rng, self._claim()
        said = self._statement(fact)
        reason = explain(fact, self.world, rng)[0]
        match rng.randrange(6):
            case 0:
                return Lesson(f"is it so that {said}?", "yes" if fact.holds else "no")
            case 1:
                return Lesson(
                    f"is it so that {said}? why?", f"{'yes' if fact.holds else 'no'} because {reason}"
                )
            case 2:
                return Lesson(f"true or false: {said}", "true" if fact.holds else "false")
            case 3:
                return Lesson(f"{rng.choice(('correct', 'check'))}: {said}", reason)
            case 4:
                claims = [fact, *(self._claim() for _ in range(3))]
                listed = "; ".join(self._statement(claim) for claim in claims)
                said_of = " ".join("true" if claim.holds else "false" for claim in claims)
                return Lesson(f"true or false each: {listed}", said_of)
            case _:
                denied = fill(rng.choice(DENIALS[fact.relation]), fact, self.world)
                return Lesson(f"true or false: {denied}", "false" if fact.holds else "true")

    def choice(self) -> Lesson:
        """A question with choices, and what the choice rests on."""
        rng = self.rng
        example = self._drawn(
            lambda: draw_choice(self.exercises, rng.randrange(2), choices=rng.randint(2, 5))
        )
        choices = list(example.choices)
        rng.shuffle(choices)
        question, reason, answer = example.fields["question"], example.explanations[0], example.answer
        match rng.randrange(4):
            case 0:
                asked = f"{question} choose from: {', '.join(choices)}"
            case 1:
                asked = f"options: {'; '.join(choices)}. {question}"
            case 2:
                asked = f"{question} {' or '.join(choices)}?"
            case _:
                asked = f"{question} {' '.join(f'{n + 1}. {text}' for n, text in enumerate(choices))}"
        match rng.randrange(4):
            case 0:
                return Lesson(asked, answer)
            case 1 | 2:
                return Lesson(f"{asked} {self._ask_why()}", f"{answer} because {reason}")
            case _:
                return Lesson(f"{asked} think first", f"{reason}, so {answer}")

    def pair(self) -> Lesson:
        """Two sentences, one of them wrong."""
        rng, place = self.rng, self.rng.randrange(2)
        example = self._drawn(lambda: draw_nonsense(self.exercises, place))
        first, second = example.fields["sent0"], example.fields["sent1"]
        reason = example.explanations[0]
        marks = rng.choice((("one", "two"), ("first", "second"), ("a", "b")))
        asked = f"{marks[0]}: {first} {marks[1]}: {second}"
        match rng.randrange(4):
            case 0:
                wrong = rng.choice(("wrong", "nonsensical", "more nonsensical"))
                return Lesson(f"{asked} which is {wrong}?", marks[place])
            case 1:
                return Lesson(f"{asked} which is right?", marks[1 - place])
            case 2:
                asked = f"{asked} which is wrong? {self._ask_why()}"
                return Lesson(asked, f"{marks[place]} because {reason}")
            case _:
                return Lesson(f"{asked} what is wrong?", reason)

    def compare(self) -> Lesson:
        """Which of two things something is true of."""
        rng, place = self.rng, self.rng.randrange(2)
        example = self._drawn(lambda: draw_choice(self.exercises, place, choices=2))
        asked, reason = example.fields["question"], example.explanations[0]
        listed = f"choice1: {example.choices[0]} choice2: {example.choices[1]}"
        if rng.random() < 0.5:
            return Lesson(f"{asked} {listed}", f"choice{place + 1}")
        return Lesson(f"{asked} {listed} why?", f"choice{place + 1} because {reason}")

    def follows(self) -> Lesson:
        """Whether one sentence follows from another."""
        rng = self.rng
        example = self._drawn(lambda: draw_entailment(self.exercises, rng.randrange(3)))
        premise, hypothesis = example.fields["premise"], example.fields["hypothesis"]
        reason, label = example.explanations[0], example.answer
        texts = rng.choice(
            (f"text: {premise} claim: {hypothesis}", f"premise: {premise} hypothesis: {hypothesis}")
        )
        word = {"entailment": "yes", "neutral": "maybe", "contradiction": "no"}[label]
        match rng.randrange(4):
            case 0:
                return Lesson(f"{premise} does it follow? {hypothesis}", word)
            case 1:
                asked = f"{premise} does it follow? {self._ask_why()} {hypothesis}"
                return Lesson(asked, f"{word} because {reason}")
            case 2:
                return Lesson(f"{texts} relation?", label)
            case _:
                return Lesson(f"{texts} relation? {self._ask_why()}", f"{label} because {reason}")

    def _ask_why(self) -> str:
        """Asks for a reason; now and then one is given unasked."""
        return self.rng.choice(("why?", "give a reason", "say why", ""))

    def _statement(self, fact: Fact) -> str:
        return fill(self.rng.choice(STATEMENTS[fact.relation]), fact, self.world)

    def _word(self) -> str:
        """A word of the world, or a few letters that make none."""
        if self.rng.random() < 0.1:
            return "".join(self.rng.choice(_SIGNS) for _ in range(self.rng.randint(1, 4)))
        return self.rng.choice(self.words)

    def _drawn(self, draw: Callable[[], Example | None]) -> Example:
        while True:
            example = draw()
            if example is not None:
                return example

    def _claim(self) -> Fact:
        """A fact, or as often something false near one."""
        fact = self.everything.fact()
        return self._false_claim(fact) if self.rng.random() < 0.5 else fact

    def _false_claim(self, fact: Fact) -> Fact:
        """A false claim near a fact: another thing, or something else said of it."""
        wrong = self.everything.wrong(fact)
        return self.rng.choice(wrong) if wrong else fact

    def ask(self, fact: Fact, *, asks_thing: bool) -> str:
        """A question about a fact, for its thing or for what is said of it."""
        return ask(fact, self.world, self.rng, asks_thing=asks_thing, part=None)[0]


KINDS: dict[str, tuple[Callable[[Teacher], Lesson], float]] = {
    "copy": (Teacher.copy, 0.02),
    "pick": (Teacher.pick, 0.05),
    "describe": (Teacher.describe, 0.20),
    "list": (Teacher.listing, 0.08),
    "question": (Teacher.question, 0.12),
    "truth": (Teacher.truth, 0.12),
    "choice": (Teacher.choice, 0.17),
    "pair": (Teacher.pair, 0.14),
    "compare": (Teacher.compare, 0.05),
    "follows": (Teacher.follows, 0.10),
}
"""Name to the method that makes such a lesson, and how often."""

FIRST_KINDS = ("copy", "pick")
"""What comes first: pointing at words of the input, which everything else needs."""
