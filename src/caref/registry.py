"""One small class for every table of names: objectives, methods, tasks, metrics, backends.

An entry is a lazy path ``"package.module:attribute"``, so that listing names imports
nothing. Other packages add their own through the entry-point group ``caref.<kind>s``.
"""

from __future__ import annotations

import difflib
import importlib
import warnings
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from caref.errors import CarefError, UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """A table of names, looked up lazily.

    Args:
        kind: What one entry is, in the singular, as messages call it: ``"task"``.
        entries: Name to ``"module:attribute"``.

    Example:
        >>> squares = Registry("number", {"four": "math:pow"})
        >>> squares.names()
        ['four']
        >>> squares.get("four")(2, 2)
        4.0
        >>> squares.get("fuor")
        Traceback (most recent call last):
        caref.errors.UnknownNameError: unknown number 'fuor'; did you mean 'four'? See: caref list numbers
    """

    def __init__(self, kind: str, entries: Mapping[str, str]) -> None:
        self.kind = kind
        self._paths: dict[str, str] = dict(entries)
        self._objects: dict[str, T] = {}
        self._plugins: set[str] = set()
        self._plugins_read = False

    @property
    def plural(self) -> str:
        """The entry-point group's last part and the argument of ``caref list``."""
        return f"{self.kind}s"

    def names(self) -> list[str]:
        """All names, in the order of the table, plug-ins last."""
        self._read_plugins()
        return [*self._paths, *(name for name in self._objects if name not in self._paths)]

    def get(self, name: str) -> T:
        """The entry called `name`, imported on its first use.

        Raises:
            UnknownNameError: If there is none; the message suggests the nearest name.
            CarefError: If it is an installed package's own and cannot be imported.
        """
        if name not in self._objects:
            if name not in self._paths:
                self._read_plugins()
            if name not in self._paths:
                raise UnknownNameError(self._unknown(name))
            self._objects[name] = self._imported(name)
        return self._objects[name]

    def add(self, name: str, entry: T) -> None:
        """Add an entry of this process's own.

        Raises:
            ValueError: If the name is taken.
        """
        if name in self:
            raise ValueError(f"{self.kind} {name!r} exists already")
        self._objects[name] = entry

    def __contains__(self, name: object) -> bool:
        return name in self._objects or name in self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def items(self) -> Iterator[tuple[str, Any]]:
        """Pairs of name and entry; imports every entry."""
        return ((name, self.get(name)) for name in self.names())

    def suggest(self, name: str) -> str | None:
        """The nearest name to a misspelt one, or None where nothing is near."""
        near = difflib.get_close_matches(name, self.names(), n=1, cutoff=0.5)
        return near[0] if near else None

    def _unknown(self, name: str) -> str:
        near = self.suggest(name)
        hint = f"did you mean {near!r}?" if near else f"there are: {', '.join(self.names())}."
        return f"unknown {self.kind} {name!r}; {hint} See: caref list {self.plural}"

    def _imported(self, name: str) -> T:
        module, _, attribute = self._paths[name].partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            if name not in self._plugins:
                raise
            raise CarefError(
                f"{self.kind} {name!r} cannot be imported from {self._paths[name]!r}: {error}"
            ) from error

    def _read_plugins(self) -> None:
        if self._plugins_read:
            return
        self._plugins_read = True
        for point in entry_points(group=f"caref.{self.plural}"):
            if point.name in self._paths or point.name in self._objects:
                warnings.warn(
                    f"{self.kind} {point.name!r} of an installed package ({point.value}) is ignored: "
                    "the name is taken",
                    stacklevel=2,
                )
                continue
            self._paths[point.name] = point.value
            self._plugins.add(point.name)
