"""Drawing facts and false claims for one part, so that no part asks what another asks."""

from __future__ import annotations

import functools
import hashlib
import random
from collections.abc import Sequence

from caref.tasks.example import Fact
from caref.tasks.pool import Part
from caref.tasks.starter.world import BIGGER, RELATIONS, World

_SHARES: Sequence[tuple[float, Part]] = ((0.6, "train"), (0.8, "validation"), (1.0, "test"))
_WEIGHTS = dict.fromkeys(RELATIONS, 1.0) | {"used to": 2.0, "found": 1.5, "has": 1.5, "causes": 0.3}


def part_of(fact: Fact) -> Part:
    """The part that may ask about a fact or a false claim: by its hash, the same for ever."""
    key = "\x1f".join(fact[:3])
    share = int(hashlib.sha256(key.encode()).hexdigest()[:8], 16) / 16**8
    return next(part for limit, part in _SHARES if share < limit)


class Drawing:
    """Random facts of one part, and claims that go wrong.

    Args:
        world: Where the facts are.
        part: Only facts of this part are drawn; None draws from all.
        rng: Decides everything.
    """

    def __init__(self, world: World, part: Part | None, rng: random.Random) -> None:
        self.world = world
        self.part = part
        self.rng = rng
        self._facts: dict[str, list[Fact]] = {relation: [] for relation in RELATIONS}
        for fact in world.facts():
            if self.may_ask(fact):
                self._facts[fact.relation].append(fact)

    def may_ask(self, fact: Fact) -> bool:
        """Whether the part may ask about a fact or a false claim."""
        return self.part is None or part_of(fact) == self.part

    def fact(self) -> Fact:
        """A fact that holds; first the relation is drawn, so that the sizes do not drown the rest."""
        relations = [relation for relation in RELATIONS if self._facts[relation]]
        weights = [_WEIGHTS[relation] for relation in relations]
        relation = self.rng.choices(relations, weights)[0]
        return self.rng.choice(self._facts[relation])

    def wrong(self, fact: Fact) -> list[Fact]:
        """`wrong_things` or `wrong_values`, one as often as the other."""
        return self.wrong_things(fact) if self.rng.random() < 0.5 else self.wrong_values(fact)

    def wrong_values(self, fact: Fact) -> list[Fact]:
        """All claims that say of the same thing, under the same relation, what is false of it."""
        return [
            Fact(fact.thing, fact.relation, value, holds=False)
            for value in _false_values(self.world, fact.thing, fact.relation)
        ]

    def wrong_things(self, fact: Fact) -> list[Fact]:
        """All claims that say the same, falsely, of another thing."""
        return [
            Fact(thing, fact.relation, fact.value, holds=False)
            for thing in _false_things(self.world, fact.relation, fact.value)
        ]


@functools.lru_cache(maxsize=4096)
def _false_values(world: World, thing: str, relation: str) -> tuple[str, ...]:
    return tuple(value for value in world.values(relation) if world.verdict(thing, relation, value) is False)


@functools.lru_cache(maxsize=4096)
def _false_things(world: World, relation: str, value: str) -> tuple[str, ...]:
    if relation == BIGGER and world.things[value].size is None:
        return ()
    return tuple(thing for thing in world.things if world.verdict(thing, relation, value) is False)
