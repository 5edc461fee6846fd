"""What long work tells whoever watches it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives how far a series of runs is."""

    def begin_run(self, name: str) -> None:
        """A run begins."""

    def advance(self, stage: str, done: int, total: int) -> None:
        """A stage of the present run has done so much of so much."""

    def end_run(self) -> None:
        """The present run is complete."""

    def run_complete(self, name: str, seconds: float) -> None:
        """A run is complete that was one of several at once; nothing was told of it before."""


class Silent:
    """Tells nobody."""

    def begin_run(self, name: str) -> None:
        """Nothing."""

    def advance(self, stage: str, done: int, total: int) -> None:
        """Nothing."""

    def end_run(self) -> None:
        """Nothing."""

    def run_complete(self, name: str, seconds: float) -> None:
        """Nothing."""
