"""How long the quickstart takes from nothing, and how much memory its processes need together.

    python benchmarks/scripts/quickstart_time.py --rounds 3

Every round runs ``caref quickstart`` in a process and a folder of its own, as a user does. Memory is the
largest sum of the resident sizes of that process and all its children, seen every tenth of a second.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep

import psutil
from rows import CSV, append_row, environment, summary


def run_once(arguments: list[str]) -> tuple[float, float]:
    """Seconds, and the peak memory in MiB."""
    peak = 0
    with tempfile.TemporaryDirectory() as folder:
        started = perf_counter()
        process = psutil.Popen(
            [sys.executable, "-m", "caref", "quickstart", "--out", folder, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None:
            peak = max(peak, resident(process))
            sleep(0.1)
        if process.returncode:
            raise SystemExit(f"caref quickstart failed with {process.returncode}")
        return perf_counter() - started, peak / 2**20


def resident(process: psutil.Process) -> int:
    """Bytes of a process and its children; what has just ended counts as nothing."""
    total = 0
    try:
        for each in [process, *process.children(recursive=True)]:
            try:
                total += each.memory_info().rss
            except psutil.Error:
                continue
    except psutil.Error:
        pass
    return total


def measure(rounds: int, arguments: list[str], csv: Path) -> None:
    where = environment()  # before a row is written: the file is part of the checkout
    measured = [run_once(arguments) for _ in range(rounds)]
    for unit, values in zip(("s", "MiB"), map(list, zip(*measured, strict=True)), strict=True):
        row: dict[str, object] = {
            "benchmark": "quickstart_time",
            "implementation": "caref quickstart",
            "mode": "wall clock" if unit == "s" else "peak resident memory, all processes",
            "shape": " ".join(arguments) or "as it is",
            "dtype": "float32",
            "unit": unit,
            **summary(values, values),
            **where,
        }
        append_row(csv, row)
        print(f"{row['mode']}: median {row['median']} {unit} of {rounds}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--csv", type=Path, default=CSV)
    parser.add_argument("arguments", nargs="*", help="after --, for caref quickstart")
    given = parser.parse_args()
    measure(given.rounds, given.arguments, given.csv)
