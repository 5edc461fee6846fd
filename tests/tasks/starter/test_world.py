"""The table is well-formed, and what it calls true and false is."""

from __future__ import annotations

import importlib.resources
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, product
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from caref.tasks.starter import wording
from caref.tasks.starter.world import BIGGER, DENIED, IS_A, LISTED, RELATIONS, load_world

WORLD = load_world()
TABLE: dict[str, Any] = yaml.safe_load(
    (importlib.resources.files("caref.tasks.starter") / "world.yaml").read_text(encoding="utf-8")
)
ROWS: dict[str, dict[str, Any]] = {
    name: row for rows in TABLE["things"].values() for name, row in rows.items()
}
FAMILIES = {kind.family for kind in WORLD.kinds.values()}
USES = {kind.use for kind in WORLD.kinds.values()}
VALUES = {relation: set(WORLD.values(relation)) for relation in LISTED}

things = st.sampled_from(sorted(WORLD.things))
sized = st.sampled_from(sorted(name for name, thing in WORLD.things.items() if thing.size is not None))


def test_keys_are_known() -> None:
    assert set(TABLE) == {
        "kinds", "overlaps", "close", "close in use", "takes after", "opposites", "things",
    }  # fmt: skip
    for row in TABLE["kinds"].values():
        assert {"a", "family"} <= set(row) <= {"a", "family", "under", "use", "maybe"}
    for name, row in ROWS.items():
        assert "a" in row, name
        assert set(row) <= {"a", "size", "maybe", *LISTED, *DENIED}, name
    assert len(ROWS) == sum(len(rows) for rows in TABLE["things"].values()) >= 200


def test_names_refer_to_something() -> None:
    kinds = set(TABLE["kinds"])
    assert set(TABLE["things"]) == kinds
    assert {row["under"] for row in TABLE["kinds"].values() if "under" in row} <= kinds
    assert set(chain(*TABLE["overlaps"])) <= kinds
    assert set(chain(*TABLE["close"])) <= FAMILIES
    assert set(chain(*TABLE["close in use"])) <= USES
    assert set(chain(*TABLE["takes after"].items())) <= FAMILIES
    assert set(chain(*TABLE["opposites"])) & VALUES["is"]
    for pairs in ("overlaps", "close", "close in use"):
        assert max(Counter(frozenset(pair) for pair in TABLE[pairs]).values()) == 1
        assert all(len(set(pair)) == 2 for pair in TABLE[pairs])


def lists() -> Iterator[tuple[str, str, list[str]]]:
    for name, row in ROWS.items():
        for key, values in row.items():
            if isinstance(values, list):
                yield name, key, values
    for name, row in TABLE["kinds"].items():
        yield name, "maybe", row.get("maybe", [])


def test_values_are_short_plain_and_said_once() -> None:
    for name, key, values in lists():
        assert len(set(values)) == len(values), (name, key)
        for value in values:
            assert re.fullmatch(r"[a-z]+( [a-z]+){0,5}", value), (name, key, value)
    assert all(re.fullmatch(r"[a-z]+( [a-z]+)?", name) for name in ROWS)
    assert all(1 <= row.get("size", 1) <= 12 for row in ROWS.values())


def test_nothing_is_held_and_denied() -> None:
    for name, row in ROWS.items():
        for key, relation in DENIED.items():
            assert not set(row.get(key, ())) & set(row.get(relation, ())), (name, key)
        for group in TABLE["opposites"]:
            assert len(set(group) & set(row.get("is", ()))) <= 1, (name, group)


def test_every_maybe_leaves_something_open() -> None:
    """What `maybe` lists, some relation knows, and there the thing neither holds nor denies it."""
    for name, row in ROWS.items():
        thing = WORLD.things[name]
        for value in row.get("maybe", ()):
            known = {relation for relation in LISTED if value in VALUES[relation]}
            held = {relation for relation in LISTED if value in row.get(relation, ())}
            denied = {DENIED[key] for key in DENIED if value in row.get(key, ())}
            assert known - held - denied, (name, value)
            assert value not in thing.kind.maybe, (name, value)
    for kind in WORLD.kinds.values():
        assert kind.maybe <= set().union(*VALUES.values()), kind.name


def test_templates() -> None:
    for templates in (wording.STATEMENTS, wording.DENIALS, wording.ASK_VALUE, wording.ASK_THING):
        assert set(templates) == set(RELATIONS)
    assert set(wording.SENTENCES) == set(wording.CLAUSES) == set(RELATIONS)
    held_out = [wording.SCENES, *wording.ASK_VALUE.values(), *wording.ASK_THING.values()]
    for words in [*held_out, *wording.SENTENCES.values()]:
        assert len(set(words)) == len(words) >= 2
        assert wording.wordings(words, "train") == words[:-1]
        assert wording.wordings(words, "validation") == wording.wordings(words, "test") == words


def test_the_separator_of_answers_is_never_said() -> None:
    said = yaml.safe_dump(TABLE) + repr(
        [value for name, value in vars(wording).items() if name.isupper() and name != "BIGGER"]
    )
    assert "because" not in said


def test_every_fact_holds_and_none_twice() -> None:
    facts = list(WORLD.facts())
    assert len(set(facts)) == len(facts)
    assert all(WORLD.verdict(*fact[:3]) is True for fact in facts)


def test_every_denial_is_false() -> None:
    for name, row in ROWS.items():
        for key, relation in DENIED.items():
            for value in row.get(key, ()):
                assert WORLD.verdict(name, relation, value) is False, (name, key, value)


@given(sized, sized)
def test_bigger_is_an_order(one: str, other: str) -> None:
    verdict, reverse = WORLD.verdict(one, BIGGER, other), WORLD.verdict(other, BIGGER, one)
    assert (verdict, reverse) in {(True, False), (False, True), (None, None)}


def test_bigger_is_transitive() -> None:
    one_of_each_size = {thing.size: name for name, thing in WORLD.things.items() if thing.size is not None}
    for one, two, three in product(one_of_each_size.values(), repeat=3):
        if WORLD.verdict(one, BIGGER, two) and WORLD.verdict(two, BIGGER, three):
            assert WORLD.verdict(one, BIGGER, three)


@given(things)
def test_a_thing_is_of_its_kind_and_the_wider_ones(thing: str) -> None:
    kind = WORLD.things[thing].kind
    while True:
        assert WORLD.verdict(thing, IS_A, kind.a) is True
        if kind.under is None:
            break
        kind = WORLD.kinds[kind.under]


@given(things, st.sampled_from(sorted(chain(*TABLE["opposites"]))))
def test_opposites_exclude_each_other(thing: str, value: str) -> None:
    others = [word for group in TABLE["opposites"] if value in group for word in group if word != value]
    if WORLD.verdict(thing, "is", value):
        assert all(WORLD.verdict(thing, "is", other) is False for other in others)


@given(things, st.sampled_from([(relation, value) for relation in LISTED for value in VALUES[relation]]))
def test_what_the_own_family_holds_is_never_taken_for_false(thing: str, claim: tuple[str, str]) -> None:
    """What a horse has may be true of a dog: only the table itself can deny it."""
    relation, value = claim
    if WORLD.verdict(thing, relation, value) is False and relation != "is":
        denied = any(value in ROWS[thing].get(key, ()) for key, of in DENIED.items() if of == relation)
        families = {
            each.kind.use if relation == "used to" else each.kind.family
            for name, each in WORLD.things.items()
            if value in ROWS[name].get(relation, ())
        }
        own = WORLD.things[thing].kind
        assert denied or (own.use if relation == "used to" else own.family) not in families


TRUE = """
knife | used to | cut bread; pencil | used to | write a letter; pillow | used to | rest your head
lamp | used to | read at night; bridge | used to | cross a river; hand | used to | grab things
car | used to | drive to work; sugar | used to | sweeten tea; wool | used to | knit a sweater
book | made of | paper; ice | made of | water; cheese | made of | milk; shirt | made of | cotton
cow | found | on a farm; salmon | found | in a river
pilot | found | at an airport; sun | found | in the sky
owl | has | wings; airplane | has | wings; house | has | a roof; violin | has | four strings
dog | can | bark; penguin | can | swim; airplane | can | fly; wood | can | float on water
baker | can | bake bread
rose | needs | water; phone | needs | a battery; violin | needs | a bow; fire | needs | air
lemonade | is | cold; snail | is | slow; lion | is | dangerous; stone | is | hard
rain | causes | puddles; onion | causes | tears; sheep | eats | grass; owl | eats | mice
owl | is a | an animal; owl | is a | a bird; tent | is a | a structure; fire | is a | a source of light
cow | bigger than | mouse; sun | bigger than | house; dog | bigger than | spoon
"""
FALSE = """
pillow | used to | cut bread; rose | used to | write a letter; shoe | used to | read at night
spoon | used to | cross a lake; piano | used to | chew; guitar | used to | keep food cold
cow | made of | paper; shirt | made of | cheese; shark | made of | wool; tree | made of | metal
cow | found | in a toolbox; piano | found | in a fruit bowl; cake | found | at a bus stop
snake | has | legs; dog | has | wings; sofa | has | whiskers; apple | has | an engine; whale | has | fur
penguin | can | fly; cat | can | bark; table | can | walk; stone | can | float on water
fish tank | can | purr
whale | can | climb a tree; goldfish | can | walk; rooster | can | lay eggs; moss | can | sing
hammer | needs | food; sock | needs | water; rose | needs | a stamp; dog | needs | an airplane
lemonade | is | hot; snail | is | fast; lion | is | harmless; needle | is | blunt
sock | causes | puddles; lion | eats | hay; basket | eats | mice; cow | eats | meat
whale | is a | a fish; bat | is a | a bird; snail | is a | an insect; pillow | is a | an animal
mouse | bigger than | cow; house | bigger than | sun; spoon | bigger than | dog
"""
OPEN = """
table | used to | cook soup
hammer | used to | build a treehouse; pencil | used to | do homework; pajamas | used to | keep warm in bed
boat | used to | cross a river; lighthouse | used to | give light; recipe | used to | cook a meal
hand | used to | make snowballs; raincoat | made of | plastic; doll | made of | cloth
tractor | found | in a potato field; tree | found | on a playground; cat | found | on a bed
chair | has | long back legs; dice | has | black spots; clock | has | hands
robot | can | hop; ant | can | fly; cat | can | catch fish; bread | needs | flour; cow | needs | a field
flute | is | loud; chicken | is a | a food; tomato | is a | a fruit; bridge | is a | a building
cow | bigger than | horse; rope | bigger than | ant; dog | bigger than | cat
"""


def claims(text: str) -> list[tuple[str, ...]]:
    return [tuple(row.strip().split(" | ")) for row in re.split(r"[;\n]", text.strip())]


@pytest.mark.parametrize(("text", "verdict"), [(TRUE, True), (FALSE, False), (OPEN, None)])
def test_verdicts_that_anybody_would_give(text: str, verdict: bool | None) -> None:
    told = {claim: WORLD.verdict(*claim) for claim in claims(text)}
    assert {claim for claim, each in told.items() if each is not verdict} == set()
