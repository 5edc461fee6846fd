"""The per-example values that settings are compared by: names, units and which way is better."""

from __future__ import annotations

from dataclasses import dataclass, replace

SCALED = "_scaled"
"""How the name of a value ends that is computed after temperature scaling."""


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A value by which two settings are compared.

    Attributes:
        name: As ``caref compare --values`` has it.
        heading: In words.
        column: The other setting's, in ``scores.jsonl``.
        reference_column: The reference's; another one where only the reference is scaled.
        points: Whether a difference is in percentage points; else it is in the value's own unit.
        scale: Turns the column into the unit of the comparison.
        higher_is_better: None where neither way is, or where that is not known.
    """

    name: str
    heading: str
    column: str
    reference_column: str
    points: bool = False
    scale: float = 1.0
    higher_is_better: bool | None = None

    @property
    def same_column(self) -> bool:
        """Whether both settings are compared by the same value."""
        return self.column == self.reference_column

    def seen(self, points: float) -> float:
        """So many percentage points in the unit of the comparison; a value without a unit has hundredths."""
        return points if self.points else points / 100


def _known(
    name: str, heading: str, column: str | None = None, *, share: bool = False, higher: bool | None = True
) -> ComparedValue:
    column = column or name
    return ComparedValue(
        name, heading, column, column, points=True, scale=100 if share else 1, higher_is_better=higher
    )


def _lower(name: str, heading: str) -> ComparedValue:
    return ComparedValue(name, heading, name, name, higher_is_better=False)


KNOWN = {
    value.name: value
    for value in (
        _known("accuracy", "accuracy", "correct", share=True),
        _known("nbert", "nBERT"),
        _known("f1_all", "F1 of all", "bertscore_f1"),
        _known("candidate_accuracy", "likeliest candidate right", "candidate_correct", share=True),
        _known("broken", "broken", share=True, higher=False),
        _known("rouge_l", "ROUGE-L"),
        _known("sentence_bleu", "sentence BLEU"),
        _lower("brier", "Brier"),
        _lower("nll", "NLL"),
        _lower(f"brier{SCALED}", "Brier, both + T"),
        _lower(f"nll{SCALED}", "NLL, both + T"),
    )
}
"""By name; any other per-example value is compared in its own unit, and neither way is called better."""

DEFAULTS = ("accuracy", "nbert", "brier", "nll")
CALIBRATION = ("brier", "nll")


def value_named(name: str) -> ComparedValue:
    """The value of that name: one of `KNOWN`, or the per-example value of that name as it is.

    Example:
        >>> value_named("accuracy").column, value_named("own").higher_is_better
        ('correct', None)
    """
    return KNOWN.get(name) or ComparedValue(name, name, name, name)


def with_temperature(value: ComparedValue) -> list[ComparedValue]:
    """A value of the calibration as it is, against the reference with temperature, and with both scaled.

    What scaling the reference afterwards gives as well is no merit of the other setting's training.

    Example:
        >>> [each.heading for each in with_temperature(value_named("nll"))]
        ['NLL', 'NLL, reference + T', 'NLL, both + T']
        >>> [each.heading for each in with_temperature(value_named("accuracy"))]
        ['accuracy']
    """
    if value.name not in CALIBRATION:
        return [value]
    scaled = f"{value.column}{SCALED}"
    reference = replace(
        value,
        name=f"{value.name}_reference{SCALED}",
        heading=f"{value.heading}, reference + T",
        reference_column=scaled,
    )
    return [value, reference, value_named(scaled)]
