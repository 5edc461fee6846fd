"""The settings that an entry of a registry declares: the keywords of its constructor or function.

One place reads them, so that a new objective, method, metric or task has its flags, its validation
and its line in ``spec.json`` without an edit anywhere else.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from caref.errors import CarefError

SCALARS = (bool, int, float, str)

WIRING = frozenset({"shift", "ignore_index", "separator_ids", "device", "fused", "cache"})
"""Keywords that follow from the model or the machine: the caller of an entry sets them, not a user."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes:
        name: The keyword, and the flag's name.
        type: ``bool``, ``int``, ``float`` or ``str``.
        choices: The values allowed, where they are listed in the annotation.
        default: What it is when not given.
        description: Its line in the docstring of the class or function.
    """

    name: str
    type: type
    choices: tuple[str, ...]
    default: Any
    description: str


def declared_settings(entry: object) -> dict[str, Setting]:
    """The settings of a registry entry, by name, from its signature and docstring.

    Args:
        entry: A class, a function or a `functools.partial` of one, whose positional arguments are no
            settings. What is none of these, such as a task read from files, has no settings.
    """
    if not callable(entry):
        return {}
    called = entry.func if isinstance(entry, functools.partial) else entry
    hints = get_type_hints(called.__init__ if isinstance(called, type) else called)  # type: ignore[misc]
    described = _described(inspect.getdoc(called) or "")
    for base in entry.__mro__[1:-1] if isinstance(entry, type) else ():
        described = {**_described(inspect.getdoc(base) or ""), **described}
    settings = {}
    for name, parameter in inspect.signature(entry).parameters.items():
        if name in WIRING:
            continue
        kind, choices = _scalar(hints.get(name, str))
        if kind is not None:
            settings[name] = Setting(name, kind, choices, parameter.default, described.get(name, ""))
    return settings


def resolved_settings(kind: str, name: str, entry: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of an entry, those given put over its defaults.

    Raises:
        CarefError: If one is given that the entry does not have, or has another type.
    """
    declared = declared_settings(entry)
    for key in given:
        if key not in declared:
            near = difflib.get_close_matches(key, declared, n=1)
            has = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(declared) or 'none'}"
            raise CarefError(f"{key!r} is not a setting of the {kind} {name!r}; {has}")
    return {
        key: _checked(kind, name, setting, given[key]) if key in given else setting.default
        for key, setting in declared.items()
    }


def _checked(kind: str, name: str, setting: Setting, value: Any) -> Any:
    if value is None and setting.default is None:
        return None
    if setting.choices and value not in setting.choices:
        allowed = ", ".join(setting.choices)
        raise CarefError(f"{setting.name} of the {kind} {name!r} must be one of {allowed}, got {value!r}")
    fits = isinstance(value, setting.type) and (setting.type is bool or not isinstance(value, bool))
    if setting.type is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not fits:
        raise CarefError(
            f"{setting.name} of the {kind} {name!r} must be of type {setting.type.__name__}, got {value!r}"
        )
    return value


def _scalar(hint: Any) -> tuple[type | None, tuple[str, ...]]:
    """The scalar type behind an annotation (None where there is none), and its listed values."""
    if hint in SCALARS:
        return hint, ()
    if get_origin(hint) is Literal:
        return str, tuple(str(value) for value in get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        if len(parts) == 1:
            return _scalar(parts[0])
    return None, ()


def _described(docstring: str) -> dict[str, str]:
    """Name to text of a Google-style ``Args:`` section."""
    section = re.search(r"^Args:\n((?:[ ]+.*\n?|\n)*)", docstring, flags=re.MULTILINE)
    if section is None:
        return {}
    entries = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", section.group(1), flags=re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}
