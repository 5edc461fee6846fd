from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest

import caref.registry
from caref.errors import CarefError, UnknownNameError
from caref.losses import OBJECTIVES
from caref.methods import METHODS
from caref.metrics import METRICS
from caref.registry import Registry
from caref.tasks import TASKS


@dataclass
class Point:
    name: str
    value: str


def plug_in(monkeypatch: pytest.MonkeyPatch, **points: str) -> list[str]:
    """Pretend that an installed package declares these entry points; returns the groups asked for."""
    asked: list[str] = []

    def entry_points(*, group: str) -> list[Point]:
        asked.append(group)
        return [Point(name, value) for name, value in points.items()]

    monkeypatch.setattr(caref.registry, "entry_points", entry_points)
    return asked


def numbers() -> Registry[object]:
    return Registry("number", {"one": "fractions:Fraction", "two": "decimal:Decimal"})


@pytest.mark.parametrize("registry", [OBJECTIVES, METHODS, METRICS, TASKS], ids=lambda r: r.kind)
def test_every_entry_can_be_imported(registry: Registry[object]) -> None:
    assert len(dict(registry.items())) == len(registry.names()) > 0


def test_listing_imports_nothing() -> None:
    registry = Registry[object]("thing", {"antigravity": "antigravity:fly"})
    assert registry.names() == list(registry) == ["antigravity"]
    assert "antigravity" in registry
    assert "antigravity" not in sys.modules


def test_an_entry_is_imported_once() -> None:
    registry = numbers()
    assert registry.get("two") is registry.get("two")


def test_a_misspelt_name_is_told_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as raised:
        METHODS.get("aqvk")
    assert str(raised.value) == "unknown method 'aqvk'; did you mean 'aqkv'? See: caref list methods"


def test_a_name_like_no_other_is_told_all() -> None:
    with pytest.raises(UnknownNameError) as raised:
        numbers().get("zzzzzz")
    assert str(raised.value) == "unknown number 'zzzzzz'; there are: one, two. See: caref list numbers"


def test_a_plug_in_is_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = plug_in(monkeypatch, half="fractions:Fraction")
    registry = numbers()
    assert registry.names() == ["one", "two", "half"]
    assert registry.get("half") is registry.get("one")
    assert asked == ["caref.numbers"]


def test_a_known_name_does_not_read_the_plug_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = plug_in(monkeypatch)
    numbers().get("one")
    assert asked == []


def test_a_plug_in_cannot_take_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, one="decimal:Decimal")
    registry = numbers()
    with pytest.warns(UserWarning, match="number 'one' of an installed package .decimal:Decimal. is ignored"):
        assert registry.names() == ["one", "two"]
    assert registry.get("one") is not registry.get("two")


@pytest.mark.parametrize("path", ["no_such_package.inside:Thing", "decimal:NoSuchThing"])
def test_a_broken_plug_in_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    plug_in(monkeypatch, broken=path)
    registry = numbers()
    assert "broken" in registry.names()
    with pytest.raises(CarefError, match=f"number 'broken' cannot be imported from '{path}': No module|attr"):
        registry.get("broken")


def test_an_entry_of_this_process() -> None:
    registry = numbers()
    registry.add("three", 3)
    assert registry.names() == ["one", "two", "three"]
    assert registry.get("three") == 3
    for taken in ("three", "one"):
        with pytest.raises(ValueError, match=f"number '{taken}' exists already"):
            registry.add(taken, 4)
