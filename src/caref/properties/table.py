"""The table: every objective's properties, beside what the paper says of them.

What is measured is an objective's *penalty*: the terms that are added to cross-entropy, with their default
weights. Where there is none, or where it depends on the label (label smoothing), it is the whole loss.
Distributions are those that the loss is about: softmax's, for entmax15 and sparsemax their own. All is done
in float64, from fixed seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from caref.losses import OBJECTIVES
from caref.properties.adaptive import adaptive
from caref.properties.architecture_free import FAMILIES, architecture_free
from caref.properties.differentiable import differentiable
from caref.properties.part import Finding, Part, Verdict
from caref.properties.sparse import sparse

PROPERTIES = ("differentiable", "sparse", "adaptive", "architecture_free")

PAPER: dict[str, tuple[Verdict, Verdict, Verdict, Verdict]] = {
    "entropy": ("yes", "no", "no", "yes"),
    "label_smoothing": ("yes", "no", "no", "yes"),
    "entmax15": ("no", "yes", "no", "no"),
    "sparsemax": ("no", "yes", "no", "no"),
    "kl": ("yes", "no", "no", "yes"),
    "sced": ("yes", "yes", "yes", "yes"),
}
"""What the paper's table says of each objective, in the order of `PROPERTIES`."""

VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {"sced": ({"alpha": 1.0},)}
"""Settings that are measured beside the defaults."""


@dataclass(frozen=True, slots=True)
class Row:
    """The properties of one objective.

    Attributes:
        objective: Its name, and the settings that are not its defaults.
        measured: ``"penalty"`` or ``"whole loss"``.
        findings: Property to what was found.
    """

    objective: str
    measured: str
    findings: dict[str, Finding]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def measure(names: Sequence[str] | None = None) -> list[Row]:
    """Measure the properties of objectives.

    Args:
        names: Which; without it all of the table, with their `VARIANTS`.

    Raises:
        CarefError: If there is no objective of that name, or its extra is not installed.
    """
    chosen = OBJECTIVES.names() if names is None else list(names)
    entries = [(name, settings) for name in chosen for settings in ({}, *VARIANTS.get(name, ()))]
    parts = [(name, settings, Part(OBJECTIVES.get(name)(**settings))) for name, settings in entries]
    models = {family: build() for family, build in FAMILIES.items()}
    rows = []
    for name, settings, part in parts:
        found = (differentiable(part), sparse(part), adaptive(part), architecture_free(part, models))
        paper = PAPER.get(name, (None,) * len(PROPERTIES))
        told = ", ".join(f"{key}={value:g}" for key, value in settings.items())
        findings = {
            key: Finding(each.verdict, each.evidence, said, each.numbers)
            for key, each, said in zip(PROPERTIES, found, paper, strict=True)
        }
        rows.append(Row(f"{name} ({told})" if told else name, part.name, findings))
    return rows


def headings() -> list[str]:
    """The headings of the table, in words."""
    return ["objective", "measured", *(name.replace("_", "-") for name in PROPERTIES)]


def cells(row: Row, *, with_evidence: bool = False) -> list[str]:
    """A row in words: verdicts with the paper's beside them.

    Args:
        row: One objective's properties.
        with_evidence: With the numbers, and in bold where the paper says otherwise.
    """
    told = []
    for finding in (row.findings[name] for name in PROPERTIES):
        verdict = verdict_text(finding)
        if with_evidence:
            verdict = f"{f'**{verdict}**' if finding.disagrees else verdict}: {finding.evidence}"
        told.append(verdict)
    return [row.objective, row.measured, *told]


def verdict_text(finding: Finding) -> str:
    """A verdict as a table shows it, with the paper's where that is another."""
    if finding.disagrees:
        return f"{finding.verdict} (paper: {finding.paper})"
    return finding.verdict if finding.paper is None else f"{finding.verdict} (as the paper)"
