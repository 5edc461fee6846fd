"""Writes the tables of ``docs/speed.md`` from the rows of ``benchmarks.csv``; the text around them stays.

    python benchmarks/scripts/speed_page.py

Where a thing was measured more than once, the last row counts.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path

from loss_implementations import CROSS_ENTROPY, EAGER, FUSED, FUSED_WITHOUT_ONEDNN, LOGITS, MATMULS_ONEDNN
from rows import CSV, REPOSITORY

PAGE = REPOSITORY / "docs" / "speed.md"
MARKS = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Medians = dict[tuple[str, str], float]
"""Implementation and unit to a median."""


def measured(path: Path, benchmark: str, device: str, head: str) -> dict[str, Medians]:
    """By shape, in the order of the tokens and then of the vocabulary."""
    found: dict[str, Medians] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            on_gpu = "NVIDIA" in row["device"] or "AMD Instinct" in row["device"]
            if row["benchmark"] == benchmark and head in row["mode"] and on_gpu == (device == "gpu"):
                key = row["implementation"], row["unit"]
                found.setdefault(row["shape"], {})[key] = float(row["median"])
    return dict(sorted(found.items(), key=lambda item: [int(n) for n in re.findall(r"\d+", item[0])][::-1]))


def through_head(device: str, head: str, path: Path = CSV) -> Iterable[str]:
    """From hidden states: fused, cross-entropy alone, and the formula."""
    yield _line(
        *("tokens, hidden, vocabulary", "fused, ms", "of CE's time", "of the formula's", "of the products'"),
        *("without oneDNN, of CE's", "peak, MiB: fused", "CE", "formula"),
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for shape, medians in measured(path, "fused_loss", device, f"{head} head").items():
        time = medians[FUSED, "ms"]
        others = (
            _ratio(time, medians.get((CROSS_ENTROPY, "ms"))),
            _ratio(time, medians.get((EAGER, "ms"))),
            _ratio(time, medians.get((MATMULS_ONEDNN, "ms"))),
            _ratio(medians.get((FUSED_WITHOUT_ONEDNN, "ms")), medians.get((CROSS_ENTROPY, "ms"))),
        )
        peaks = (_number(medians.get((name, "MiB"))) for name in (FUSED, CROSS_ENTROPY, EAGER))
        yield _line(_sizes(shape), _number(time), *others, *peaks)


def from_logits(device: str, path: Path = CSV) -> Iterable[str]:
    """From logits that exist."""
    yield "| tokens, vocabulary | fused, ms | CE, ms | formula, ms | peak, MiB: fused | CE | formula |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for shape, medians in measured(path, "fused_loss_from_logits", device, "").items():
        names = [f"{LOGITS}{name}" for name in (FUSED, "cross_entropy", EAGER)]
        yield _line(
            _sizes(shape), *(_number(medians.get((name, unit))) for unit in ("ms", "MiB") for name in names)
        )


TABLES = {
    "cpu-frozen": lambda: through_head("cpu", "frozen"),
    "cpu-trained": lambda: through_head("cpu", "trained"),
    "cpu-logits": lambda: from_logits("cpu"),
}


def page(text: str) -> str:
    """The page with its tables anew."""
    return MARKS.sub(lambda mark: mark[1] + "\n".join(TABLES[mark[2]]()) + "\n" + mark[3], text)


def _sizes(shape: str) -> str:
    return " × ".join(f"{int(size):,}" for size in re.findall(r"\d+", shape))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _ratio(value: float | None, base: float | None) -> str:
    return "-" if value is None or base is None else f"{value / base:.2f}"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
