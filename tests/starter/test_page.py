"""docs/starter-model.md says what the lessons are and what the log says."""

from __future__ import annotations

import json
import re
from pathlib import Path

from caref.models.loading import ModelSource
from caref.starter.lessons import KINDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "starter-model.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The rows of the table whose heading begins so."""
    match = re.search(rf"^\| {heading}.*\n\|[-: |]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert match
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in match.group(1).splitlines()]


def test_every_kind_of_lesson_is_told_with_its_weight() -> None:
    assert {row[0]: int(row[1]) for row in table("kind")} == {
        kind: round(100 * weight) for kind, (_, weight) in KINDS.items()
    }


def test_the_log_is_the_shipped_one() -> None:
    log = Path(ModelSource("starter").location) / "training.jsonl"
    logged = {row["step"]: row for row in map(json.loads, log.read_text().splitlines())}
    rows = table("step")
    heading = re.search(r"^\| (step.*) \|$", PAGE, re.MULTILINE)
    assert heading and len(rows) >= 5
    names = [name.strip() for name in heading.group(1).split("|")]
    for row in rows:
        told = dict(zip(names, row, strict=True))
        assert {name: float(told[name].replace(",", "")) for name in names[1:]} == {
            name: logged[int(told["step"].replace(",", ""))][name] for name in names[1:]
        }
