"""The starter world in lines of text, for whoever wants to read it or check it."""

from __future__ import annotations

from collections.abc import Iterator

from caref.tasks.example import Fact
from caref.tasks.starter import wording
from caref.tasks.starter.world import BIGGER, DENIED, World

_LISTS = ("SCENES", "OPEN_CLAUSES", "OPEN_EXPLANATIONS", "SETTINGS")
_BY_RELATION = ("STATEMENTS", "DENIALS", "ASK_VALUE", "ASK_THING", "SENTENCES", "CLAUSES")


def fact_lines(world: World, *, kind: str | None = None, thing: str | None = None) -> Iterator[str]:
    """A line for each kind, and one for each of its things: what is true of it, what is false, its size.

    Args:
        world: What is listed.
        kind: Only the things of this kind, and of the kinds under it.
        thing: Only this thing.

    Example:
        >>> from caref.tasks.starter.world import load_world
        >>> for line in fact_lines(load_world(), thing="puddle"):
        ...     print(line)
        landscape: a part of the landscape
          puddle: a puddle is found on a street; a puddle needs rain; a puddle is wet; a puddle is shallow
    """
    told: dict[str, list[str]] = {name: [] for name in world.things}
    kinds: dict[str, set[str]] = {name: set() for name in world.things}
    for fact in world.facts():
        if fact.relation == BIGGER:
            break  # pairs of sizes come last, and a size tells them all
        if fact.relation == "is a":
            kinds[fact.thing].add(fact.value)
        else:
            told[fact.thing].append(wording.fill(wording.STATEMENTS[fact.relation][0], fact, world))
    for name, each in world.things.items():
        for key, relation in DENIED.items():
            for value in each.values.get(key, ()):
                denied = Fact(name, relation, value, holds=False)
                told[name].append(wording.fill(wording.DENIALS[relation][0], denied, world))
        if each.size is not None:
            told[name].append(f"size {each.size}")
    for the_kind in world.kinds.values():
        lines = [
            f"  {name}: {'; '.join(told[name])}"
            for name, each in world.things.items()
            if each.kind is the_kind
            and (thing is None or name == thing)
            and (kind is None or world.kinds[kind].a in kinds[name])
        ]
        if lines:
            yield f"{the_kind.name}: {the_kind.a}"
            yield from lines


def template_lines() -> Iterator[str]:
    """A line for each set of templates, and one for each relation in it."""
    for name in _BY_RELATION:
        yield name.lower().replace("_", " ")
        for relation, templates in getattr(wording, name).items():
            yield f"  {relation}: {templates if isinstance(templates, str) else ' / '.join(templates)}"
    for name in _LISTS:
        yield name.lower().replace("_", " ")
        yield from (f"  {template}" for template in getattr(wording, name) if template)
