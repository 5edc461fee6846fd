"""Tidy rows of ``benchmarks/data/benchmarks.csv``, one per implementation and shape."""

from __future__ import annotations

import csv
import platform
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import torch

REPOSITORY = Path(__file__).resolve().parents[2]
CSV = REPOSITORY / "benchmarks" / "data" / "benchmarks.csv"
COLUMNS = (
    "benchmark",
    "implementation",
    "mode",
    "shape",
    "dtype",
    "unit",
    "q25",
    "median",
    "q75",
    "runs",
    "ratio_to_baseline",  # median over rounds of this value by the baseline's; below 1 is less
    "device",
    "threads",
    "versions",
    "commit",
)


def paired_times(functions: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, list[float]]:
    """Seconds of every function in every round; each goes first in turn, so that drift hits all.

    Call each function once beforehand to warm it up. On a GPU they must end synchronised.
    """
    names = list(functions)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for round_number in range(rounds):
        first = round_number % len(names)
        for name in names[first:] + names[:first]:
            start = perf_counter()
            functions[name]()
            seconds[name].append(perf_counter() - start)
    return seconds


def summary(values: Sequence[float], baseline: Sequence[float]) -> dict[str, object]:
    """The columns that come from the values of paired rounds."""
    q25, median, q75 = (
        statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    )
    ratio = statistics.median(value / base for value, base in zip(values, baseline, strict=True))
    return {
        "q25": f"{q25:.6g}",
        "median": f"{median:.6g}",
        "q75": f"{q75:.6g}",
        "runs": len(values),
        "ratio_to_baseline": f"{ratio:.4g}",
    }


def environment(
    device: str = "cpu", packages: Sequence[str] = ("torch", "transformers")
) -> dict[str, object]:
    """The columns that say where a row was measured; a commit with ``-dirty`` is not clean."""
    return {
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else _cpu(),
        "threads": torch.get_num_threads(),
        "versions": " ".join(f"{package}={version(package)}" for package in packages),
        "commit": _commit(),
    }


def append_row(path: Path, row: Mapping[str, object]) -> None:
    """Append one row, after a header where the file is new.

    Raises:
        ValueError: If the row's columns, or the file's, are not `COLUMNS`.
    """
    if set(row) != set(COLUMNS):
        raise ValueError(f"columns that are missing or unknown: {sorted(set(row) ^ set(COLUMNS))}")
    new = not path.exists()
    if not new:
        with path.open(encoding="utf-8", newline="") as file:
            header = next(csv.reader(file), [])
        if tuple(header) != COLUMNS:
            raise ValueError(f"{path} has other columns: {header}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return result.stdout.strip() or "none"
