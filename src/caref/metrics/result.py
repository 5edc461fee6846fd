"""What a metric is, and what it gives back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from caref.generation.prediction import Prediction
from caref.statistics.bootstrap import Interval, mean_interval

Direction = Literal["higher", "lower"]

NO_PREDICTIONS = "no predictions"


@dataclass(frozen=True)
class MetricResult:
    """The numbers of one metric over one set of predictions.

    Attributes:
        values: Name to number; None where the number is undefined, never NaN or a stand-in.
        per_example: Name to one number per prediction, in their order.
        fingerprint: What has to be equal for two results to be comparable: encoder, layer,
            versions. Empty for a metric that depends on the predictions alone.
        notes: Name of an undefined value to the reason.
        intervals: Name of a value to the ends of its 95 % bootstrap interval over examples; a value
            without one, or one of so few examples that it would say nothing, is left out.

    Raises:
        ValueError: If a number is not finite, an undefined value has no note, or an interval is of no
            value.
    """

    values: Mapping[str, float | None]
    per_example: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    intervals: Mapping[str, Interval] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            if value is None and name not in self.notes:
                raise ValueError(f"the undefined value {name!r} needs a note that gives the reason")
        for name in self.intervals:
            if self.values.get(name) is None:
                raise ValueError(f"{name!r} has an interval and no value")
        singles = ((name, [value]) for name, value in self.values.items())
        for name, numbers in [*singles, *self.per_example.items(), *self.intervals.items()]:
            if any(number is not None and not math.isfinite(number) for number in numbers):
                raise ValueError(f"{name!r} holds a number that is not finite; use None and a note")


class Metric(Protocol):
    """Numbers computed from predictions; settings are keywords of the constructor.

    Attributes:
        name: The name in `METRICS`, and of the main one among the result's `values`.
        direction: Which way is better, or None where neither is.
        range: Smallest and largest possible main value.
        unit: Of the main value.
        source: Where it is defined.
    """

    name: str
    direction: Direction | None
    range: tuple[float, float]
    unit: str
    source: str

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The metric over `predictions`; without any, its values are None."""
        ...


@runtime_checkable
class ScoresTogether(Protocol):
    """A metric that does the work of many sets of predictions once, before each is computed."""

    def prepare(
        self, sets: Sequence[Sequence[Prediction]], *, on_progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Do what the sets have in common; `on_progress` is told how much of how much is done."""
        ...


def interval_of_mean(values: Sequence[float | None], predictions: Sequence[Prediction]) -> Interval | None:
    """The bootstrap interval of the mean of a column, over the examples that have a value.

    Predictions of the same example, as a pool of several splits has them, are drawn together.
    """
    known = [(value, each.id) for value, each in zip(values, predictions, strict=True) if value is not None]
    return mean_interval([value for value, _ in known], [id for _, id in known])


def mean_or_none(numbers: Sequence[float]) -> float | None:
    """The mean, or None of nothing.

    Example:
        >>> mean_or_none([1.0, 2.0]), mean_or_none([])
        (1.5, None)
    """
    return math.fsum(numbers) / len(numbers) if numbers else None


def given(**intervals: Interval | None) -> dict[str, Interval]:
    """The intervals that there are, by the name of their value.

    Example:
        >>> given(accuracy=(0.25, 1.0), nbert=None)
        {'accuracy': (0.25, 1.0)}
    """
    return {name: interval for name, interval in intervals.items() if interval is not None}


def undefined(reason: str, *names: str, **counts: float) -> MetricResult:
    """A result without numbers, for the same reason throughout, but for `counts`.

    Example:
        >>> undefined("no predictions", "accuracy", n=0).values
        {'accuracy': None, 'n': 0}
    """
    return MetricResult(values={**dict.fromkeys(names), **counts}, notes=dict.fromkeys(names, reason))
