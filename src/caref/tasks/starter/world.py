"""The world: things, what is true of them, and what is false of them."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from caref.tasks.example import Fact

IS_A = "is a"
BIGGER = "bigger than"
LISTED = ("used to", "made of", "found", "has", "can", "needs", "is", "causes", "eats")
"""The relations whose values the table lists; the other two follow from kind and size."""

RELATIONS = (IS_A, *LISTED, BIGGER)
DENIED = {"cannot": "can", "lacks": "has", "never eats": "eats"}
"""Keys of the table that say what is false under a relation."""
_SURE_STEPS = 2
"""So many steps apart on the ladder of sizes, one thing is bigger than the other for certain."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a thing can be: its name with an article, the wider kind, its family, and that of its use."""

    name: str
    a: str
    under: str | None
    family: str
    use: str
    maybe: frozenset[str]


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing: its name alone and with an article, its kind, and values by key of the table."""

    name: str
    a: str
    kind: Kind
    values: Mapping[str, tuple[str, ...]]
    size: int | None


class World:
    """The table, and what follows from it.

    Args:
        table: The content of ``world.yaml``, whose head explains its keys.
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.kinds = {
            name: Kind(
                name,
                row["a"],
                row.get("under"),
                row["family"],
                row.get("use", row["family"]),
                frozenset(row.get("maybe", ())),
            )
            for name, row in table["kinds"].items()
        }
        self.things = {
            name: _thing(name, row, self.kinds[kind])
            for kind, rows in table["things"].items()
            for name, row in rows.items()
        }
        self._overlaps = {frozenset(pair) for pair in table["overlaps"]}
        self._close = {frozenset(pair) for pair in table["close"]}
        self._close_in_use = {frozenset(pair) for pair in table["close in use"]}
        self._takes_after = {tuple(pair) for pair in table["takes after"].items()}
        self._opposites = {word: frozenset(group) - {word} for group in table["opposites"] for word in group}
        self._kind_called = {kind.a: kind.name for kind in self.kinds.values()}
        self._holders: dict[tuple[str, str], list[Thing]] = {}
        for thing in self.things.values():
            for relation in LISTED:
                for value in thing.values.get(relation, ()):
                    self._holders.setdefault((relation, value), []).append(thing)

    def facts(self) -> Iterator[Fact]:
        """Every fact that holds, in the order of the table; sizes as pairs of things."""
        for thing in self.things.values():
            for kind in self._kinds_of(thing):
                yield Fact(thing.name, IS_A, kind.a)
            for relation in LISTED:
                for value in thing.values.get(relation, ()):
                    yield Fact(thing.name, relation, value)
        for one, other in combinations(self.things.values(), 2):
            if self.verdict(one.name, BIGGER, other.name):
                yield Fact(one.name, BIGGER, other.name)
            elif self.verdict(other.name, BIGGER, one.name):
                yield Fact(other.name, BIGGER, one.name)

    def values(self, relation: str) -> list[str]:
        """Everything that is said of anything under a relation, each once, in the order of the table."""
        if relation == BIGGER:
            return [thing.name for thing in self.things.values() if thing.size is not None]
        if relation == IS_A:
            return [kind.a for kind in self.kinds.values()]
        return [value for key, value in self._holders if key == relation]

    def verdict(self, thing: str, relation: str, value: str) -> bool | None:
        """Whether something is true of a thing; None where the table does not decide.

        False is what the table denies, and what only things of families far away have: nobody lists that a
        pillow cannot be used to cut bread, but all that can are tools.
        """
        the_thing = self.things[thing]
        if relation == BIGGER:
            return _bigger(the_thing, self.things[value])
        if relation == IS_A:
            return self._is_a(the_thing, self.kinds[self._kind_called[value]])
        if value in the_thing.values.get(relation, ()):
            return True
        if any(value in the_thing.values.get(key, ()) for key, of in DENIED.items() if of == relation):
            return False
        if value in the_thing.values.get("maybe", ()) or any(
            value in kind.maybe for kind in self._kinds_of(the_thing)
        ):
            return None
        if relation == "is":
            held = the_thing.values.get("is", ())
            return False if self._opposites.get(value, frozenset()) & set(held) else None
        holders = self._holders.get((relation, value), [])
        far = (self._far(the_thing.kind, holder.kind, relation) for holder in holders)
        return False if holders and all(far) else None

    def _kinds_of(self, thing: Thing) -> list[Kind]:
        """Its kind, and the wider ones."""
        kinds = [thing.kind]
        while kinds[-1].under is not None:
            kinds.append(self.kinds[kinds[-1].under])
        return kinds

    def _is_a(self, thing: Thing, kind: Kind) -> bool | None:
        own = self._kinds_of(thing)
        if kind in own:
            return True
        overlaps = any(frozenset((each.name, kind.name)) in self._overlaps for each in own)
        return None if overlaps else False

    def _far(self, kind: Kind, other: Kind, relation: str) -> bool:
        """Whether things of a kind never share what things of another have under a relation."""
        if relation == "used to":
            return kind.use != other.use and frozenset((kind.use, other.use)) not in self._close_in_use
        pair = (kind.family, other.family)
        return (
            kind.family != other.family
            and frozenset(pair) not in self._close
            and pair not in self._takes_after
        )


@functools.cache
def load_world() -> World:
    """The packaged world; the file is read on the first call."""
    import yaml

    text = (importlib.resources.files("caref.tasks.starter") / "world.yaml").read_text(encoding="utf-8")
    return World(yaml.safe_load(text))


def _thing(name: str, row: Mapping[str, Any], kind: Kind) -> Thing:
    values = {key: tuple(value) for key, value in row.items() if key not in ("a", "size")}
    return Thing(name, row["a"], kind, values, row.get("size"))


def _bigger(one: Thing, other: Thing) -> bool | None:
    if one.size is None or other.size is None or abs(one.size - other.size) < _SURE_STEPS:
        return None
    return one.size > other.size
