"""The four tasks: each label follows from the table, and no part gives another one away."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from caref.protocol import FEB_SEEDS, draw_split
from caref.tasks import get_task
from caref.tasks.example import Example, Fact
from caref.tasks.pool import PARTS, Part
from caref.tasks.starter.drawing import part_of
from caref.tasks.starter.wording import (
    DENIALS,
    OPEN_CLAUSES,
    OPEN_EXPLANATIONS,
    PERSONS,
    SCENES,
    STATEMENTS,
    fill,
)
from caref.tasks.starter.world import BIGGER, load_world

WORLD = load_world()
NAMES = ("starter_nli", "starter_choice5", "starter_nonsense", "starter_choice3")
every_part = pytest.mark.parametrize(("name", "part"), [(name, part) for name in NAMES for part in PARTS])


@functools.cache
def examples(name: str, part: Part, seed: int = 0) -> tuple[Example, ...]:
    return get_task(name, {"world_seed": seed}).load(None, part).examples


def said_in(fact: Fact, text: str) -> bool:
    """Whether a text names the thing, and after it what is said of it."""
    value = WORLD.things[fact.value].a if fact.relation == BIGGER else fact.value
    return bool(re.search(rf"(?i)\b{WORLD.things[fact.thing].a}\b.*\b{value}\b", text))


def solve(name: str, example: Example) -> str:
    """The answer, from the input, the facts to know and the verdicts of the world alone."""
    assert example.truth
    facts = example.truth.facts
    assert all(fact.holds is WORLD.verdict(*fact[:3]) for fact in facts)
    if name == "starter_nli":
        premise, hypothesis = example.fields["premise"], example.fields["hypothesis"]
        if not facts:
            persons = [person for person in PERSONS if person in hypothesis]
            assert any(
                f"something that {clause.format(person=each)}." in hypothesis
                for clause in OPEN_CLAUSES
                for each in persons
            )
            return "neutral"
        (fact,) = facts
        assert re.search(rf"\b{WORLD.things[fact.thing].a}\b", premise)
        assert said_in(fact, f"{WORLD.things[fact.thing].a} {hypothesis}")
        return "entailment" if fact.holds else "contradiction"
    if name == "starter_nonsense":
        (false,) = (fact for fact in facts if not fact.holds)
        (field,) = (field for field, text in example.fields.items() if said_in(false, text))
        return {"sent0": "choice1", "sent1": "choice2"}[field]
    (true,) = (fact for fact in facts if fact.holds)
    asks_thing = len({fact.thing for fact in facts}) > 1
    assert len({fact.value if asks_thing else fact.thing for fact in facts}) == 1
    assert sorted(choice_of(fact, asks_thing) for fact in facts) == sorted(example.choices)
    given = WORLD.things[true.value].a if true.relation == BIGGER else true.value
    asked = given if asks_thing else WORLD.things[true.thing].a
    assert re.search(rf"\b{asked}\b", example.fields["question"])
    return choice_of(true, asks_thing)


def choice_of(fact: Fact, asks_thing: bool) -> str:
    return fact.thing if asks_thing else fact.value


@every_part
def test_the_answer_follows_from_the_facts(name: str, part: Part) -> None:
    assert len(examples(name, part)) == {"train": 3000, "validation": 1000, "test": 1000}[part]
    for example in examples(name, part):
        assert solve(name, example) == example.answer, example


@every_part
def test_mentions_stand_where_they_say(name: str, part: Part) -> None:
    for example in examples(name, part):
        assert example.truth and example.truth.cue is None
        assert example.truth.causes
        for mention in (*example.truth.causes, *example.truth.distractors):
            if mention.field == "choices":
                assert mention.text in example.choices
            else:
                assert re.search(rf"(?i)\b{mention.text}\b", example.fields[mention.field]), example
        assert not set(example.truth.causes) & set(example.truth.distractors)


@every_part
def test_the_answer_does_not_hang_on_persons(name: str, part: Part) -> None:
    seen = 0
    for example in examples(name, part):
        assert example.truth
        persons = {mention.text for mention in example.truth.distractors} & set(PERSONS)
        assert len(persons) <= 1
        for person in persons:
            other = next(each for each in PERSONS if not any(each in t for t in example.fields.values()))
            fields = {field: re.sub(rf"\b{person}\b", other, text) for field, text in example.fields.items()}
            assert fields != example.fields
            changed = replace(example, fields=fields)
            assert solve(name, changed) == example.answer
            seen += 1
    assert seen > len(examples(name, part)) / 3


@every_part
def test_answers_stand_in_every_place_equally_often(name: str, part: Part) -> None:
    places = Counter(example.choices.index(example.answer) for example in examples(name, part))
    assert len(places) == len(examples(name, part)[0].choices)
    assert max(places.values()) - min(places.values()) <= 1
    if part == "train":
        assert len(set(places.values())) == 1


@pytest.mark.parametrize("name", NAMES)
def test_no_part_asks_what_another_asks(name: str) -> None:
    asked: dict[Part, set[tuple[str, ...]]] = {}
    for part in PARTS:
        asked[part] = {(*each.fields.values(), *sorted(set(each.choices))) for each in examples(name, part)}
        assert len(asked[part]) == len(examples(name, part))
        for example in examples(name, part):
            assert example.truth
            facts = example.truth.facts
            for fact in facts if name == "starter_nonsense" else facts[:1]:
                assert part_of(fact) == part
    assert asked["train"].isdisjoint(asked["validation"] | asked["test"])
    assert asked["validation"].isdisjoint(asked["test"])


@every_part
def test_explanations(name: str, part: Part) -> None:
    for example in examples(name, part):
        assert example.truth
        assert 1 <= len(example.explanations) <= 3
        assert len(set(example.explanations)) == len(example.explanations)
        assert all("because" not in text and text == text.strip() for text in example.explanations)
        if not example.truth.facts:
            assert example.truth.causes[0].field == "hypothesis"
            clause = example.truth.causes[0].text
            told = {template.format(clause=clause) for template in OPEN_EXPLANATIONS}
        else:
            first = example.truth.facts[1 if name == "starter_nonsense" else 0]
            templates = (STATEMENTS if first.holds else DENIALS)[first.relation]
            told = {fill(template, first, WORLD) for template in templates}
        assert example.explanations[0] in told


def test_a_wording_is_kept_from_training() -> None:
    held_out = re.escape(SCENES[-1]).replace(r"\{person\}", "[A-Z][a-z]+").replace(r"\{a\}", ".+")

    def count(part: Part) -> int:
        return sum(bool(re.match(held_out, each.fields["premise"])) for each in examples("starter_nli", part))

    assert count("train") == 0
    assert min(count("validation"), count("test")) > 100


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_makes_other_examples(name: str) -> None:
    one, other = (
        {tuple(example.fields.values()) for example in examples(name, "validation", seed)} for seed in (0, 1)
    )
    assert len(one & other) < len(one) / 2
    for example in examples(name, "validation", 1):
        assert solve(name, example) == example.answer


def checksum(drawn: tuple[Example, ...]) -> str:
    content = json.dumps([dataclasses.asdict(example) for example in drawn], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", NAMES)
def test_examples_and_draws_are_pinned(name: str) -> None:
    """A change of the world or of a wording changes what runs are about: the changelog has to say so."""
    task = get_task(name)
    parts = (task.load(None, "train"), task.load(None, "validation"))
    draws = [draw_split(name, task.labels, *parts, seed=seed).checksum[:16] for seed in FEB_SEEDS[:3]]
    assert [checksum(examples(name, part)) for part in PARTS] == EXAMPLES[name]
    assert draws == DRAWS[name]


def test_importing_reads_nothing() -> None:
    code = (
        "import sys; opened = []; "
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None); "
        "import caref.tasks.starter.tasks; "
        "other = [each for each in opened if not each.endswith(('.py', '.pyc')) and 'starter' in each]; "
        "sys.exit(', '.join(other) or not opened)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


EXAMPLES = {
    "starter_nli": ["c17967f348100df2", "98edf9782ff853ef", "2a9d6f450678b7e0"],
    "starter_choice5": ["8f6e7e880d50eb89", "40c806ec88dc0c40", "c464a7ba38f2e8c0"],
    "starter_nonsense": ["76bc58e4ec264241", "fe5b72339c4b713b", "49ad581341dc6c49"],
    "starter_choice3": ["8a97991cc6ea0963", "2052894c752c8b96", "93e81346f6dd009f"],
}
DRAWS = {
    "starter_nli": ["c8664213d710d989", "9a195f1d501de549", "b200af0c1a181e96"],
    "starter_choice5": ["b54c23ae3cf479a1", "646874e7a07c42d6", "25af39de1a1e8200"],
    "starter_nonsense": ["55b276534a3e178c", "c8ccf069fe89ae78", "5dc1a0a450e65d6e"],
    "starter_choice3": ["6451dbfd84ca0748", "1333bf0edd3440e4", "406efe5d402c3787"],
}
