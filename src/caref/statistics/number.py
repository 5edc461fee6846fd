"""A number that may be undefined, and then says why."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number, or None with the reason.

    Attributes:
        value: None where the number is undefined.
        note: Why it is; empty where there is a value.

    Raises:
        ValueError: If the value is not finite, or is None without a reason.

    Example:
        >>> Number(0.5), Number(None, "one split")
        (Number(value=0.5, note=''), Number(value=None, note='one split'))
    """

    value: float | None
    note: str = ""

    def __post_init__(self) -> None:
        if self.value is None and not self.note:
            raise ValueError("an undefined number needs a note that gives the reason")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"{self.value} is not finite; use None and a note")
