from __future__ import annotations

import inspect
from typing import Any, Literal

import pytest

from caref.errors import CarefError
from caref.losses import OBJECTIVES
from caref.methods import METHODS
from caref.metrics import METRICS
from caref.settings import SCALARS, WIRING, declared_settings, resolved_settings
from caref.tasks import TASKS

ENTRIES = [
    pytest.param(registry.kind, name, registry.get(name), id=f"{registry.kind}-{name}")
    for registry in (OBJECTIVES, METHODS, METRICS, TASKS)
    for name in registry.names()
    if callable(registry.get(name))  # a plain task has no keywords
]


class Parent:
    """What a child inherits.

    Args:
        depth: How deep,
            in metres.
        name: The parent's words.
    """


class Thing(Parent):
    """A thing.

    Args:
        name: The child's words: these count.
        mode: One of two.
        count: How many.
        share: None means all.
        flag: On or off.

    Raises:
        ValueError: Never.
    """

    def __init__(
        self,
        *,
        name: str = "x",
        mode: Literal["fast", "slow"] | None = None,
        count: int = 1,
        share: float | None = None,
        depth: float = 2.0,
        flag: bool = False,
        separator_ids: list[int] | None = None,
        device: str = "cpu",
    ) -> None: ...


def make_thing(
    *, mode: Literal["fast", "slow"] = "fast", count: int = 1, share: float | None = None
) -> Thing:
    """Make a thing.

    Args:
        mode: One of two.
        count: How many,
            all together.
        share: None means all.
    """
    return Thing(mode=mode, count=count, share=share)


def resolve(**given: Any) -> dict[str, Any]:
    return resolved_settings("thing", "thing", Thing, given)


def test_what_is_declared() -> None:
    declared = declared_settings(Thing)
    assert {name: (s.type, s.choices, s.default) for name, s in declared.items()} == {
        "name": (str, (), "x"),
        "mode": (str, ("fast", "slow"), None),
        "count": (int, (), 1),
        "share": (float, (), None),
        "depth": (float, (), 2.0),
        "flag": (bool, (), False),
    }
    assert declared["name"].description == "The child's words: these count."
    assert declared["depth"].description == "How deep, in metres."
    assert declared["flag"].description == "On or off."


def test_what_a_function_declares() -> None:
    declared = declared_settings(make_thing)
    assert {name: (s.type, s.choices, s.default) for name, s in declared.items()} == {
        "mode": (str, ("fast", "slow"), "fast"),
        "count": (int, (), 1),
        "share": (float, (), None),
    }
    assert declared["count"].description == "How many, all together."
    assert resolved_settings("thing", "made", make_thing, {"share": 1}) == {
        "mode": "fast", "count": 1, "share": 1.0,
    }  # fmt: skip


def test_a_plain_value_declares_nothing() -> None:
    assert declared_settings(TASKS.get("esnli")) == {}
    with pytest.raises(CarefError, match="'rank' is not a setting of the task 'esnli'; it has: none"):
        resolved_settings("task", "esnli", TASKS.get("esnli"), {"rank": 4})


def test_defaults_are_filled_in_and_given_values_kept() -> None:
    assert resolve(count=3, mode="slow") == {
        "name": "x", "mode": "slow", "count": 3, "share": None, "depth": 2.0, "flag": False,
    }  # fmt: skip


def test_a_whole_number_for_a_float_becomes_one() -> None:
    depth = resolve(depth=3)["depth"]
    assert (depth, type(depth)) == (3.0, float)
    assert resolve(share=None)["share"] is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": 1.5}, "count of the thing 'thing' must be of type int, got 1.5"),
        ({"count": True}, "count of the thing 'thing' must be of type int, got True"),
        ({"count": None}, "count of the thing 'thing' must be of type int, got None"),
        ({"depth": True}, "depth of the thing 'thing' must be of type float, got True"),
        ({"depth": "2"}, "depth of the thing 'thing' must be of type float, got '2'"),
        ({"flag": 1}, "flag of the thing 'thing' must be of type bool, got 1"),
        ({"name": 3}, "name of the thing 'thing' must be of type str, got 3"),
        ({"mode": "quick"}, "mode of the thing 'thing' must be one of fast, slow, got 'quick'"),
        ({"mode": ["fast"]}, "mode of the thing 'thing' must be one of fast, slow, got ['fast']"),
        ({"cuont": 1}, "'cuont' is not a setting of the thing 'thing'; did you mean 'count'?"),
        ({"zzz": 1}, "'zzz' is not a setting of the thing 'thing'; it has: name, mode, count, share, depth"),
        ({"device": "cuda"}, "'device' is not a setting of the thing 'thing'; it has: "),
    ],
)  # fmt: skip
def test_what_does_not_fit(given: dict[str, Any], message: str) -> None:
    with pytest.raises(CarefError) as raised:
        resolve(**given)
    assert str(raised.value).startswith(message)


def test_an_entry_without_settings() -> None:
    assert resolved_settings("method", "base", METHODS.get("base"), {}) == {}
    with pytest.raises(CarefError, match="'rank' is not a setting of the method 'base'; it has: none"):
        resolved_settings("method", "base", METHODS.get("base"), {"rank": 4})


@pytest.mark.parametrize(("kind", "name", "entry"), ENTRIES)
def test_every_keyword_of_every_entry_is_a_described_setting(kind: str, name: str, entry: type) -> None:
    declared = declared_settings(entry)
    keywords = set(inspect.signature(entry).parameters) - WIRING
    assert set(declared) == keywords, "a keyword that no flag can set"
    for setting in declared.values():
        assert setting.description, f"{setting.name} of {name} has no line under Args:"
        assert setting.type in SCALARS
        assert setting.default is not inspect.Parameter.empty
    defaults = {key: setting.default for key, setting in declared.items()}
    assert resolved_settings(kind, name, entry, {}) == defaults
    # A default passes its own check, and what is resolved can be given again.
    assert resolved_settings(kind, name, entry, defaults) == defaults


def test_some_real_settings() -> None:
    rank = declared_settings(METHODS.get("lora"))["rank"]
    assert (rank.type, rank.default) == (int, 4)
    normalize = declared_settings(OBJECTIVES.get("caref"))["normalize"]
    assert (normalize.choices, normalize.default) == (("log_vocab",), None)
    assert "separator_ids" not in declared_settings(OBJECTIVES.get("caref"))
