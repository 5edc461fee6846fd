"""How long each stage of a run took and how much memory it needed, and on what it ran."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

import caref

PACKAGES = ("torch", "transformers", "peft", "accelerate", "tokenizers", "safetensors", "datasets", "numpy")


class StageRecorder:
    """Measures the stages of one run.

    Attributes:
        seconds: Stage to wall-clock seconds.
        peak_mib: Stage to the process's peak resident memory during it, in MiB; where the system
            cannot reset its mark, the peak since the process began.
        peak_device_mib: Stage to the accelerator's peak allocated memory; empty without one.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_mib: dict[str, float] = {}
        self.peak_device_mib: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure the block; a stage entered twice adds up."""
        import torch

        cuda = torch.cuda.is_available()
        _reset_peak()
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
            self.peak_mib[name] = max(self.peak_mib.get(name, 0.0), _peak_mib())
            if cuda:
                peak = torch.cuda.max_memory_allocated() / 2**20
                self.peak_device_mib[name] = max(self.peak_device_mib.get(name, 0.0), peak)

    def as_json(self) -> dict[str, dict[str, float]]:
        """The measurements, rounded to milliseconds and tenths of a MiB."""
        return {
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "peak_mib": {name: round(value, 1) for name, value in self.peak_mib.items()},
            "peak_device_mib": {name: round(value, 1) for name, value in self.peak_device_mib.items()},
        }


def describe_environment() -> dict[str, Any]:
    """Versions, commit and device: what another person needs to repeat a number."""
    import torch

    cuda = torch.cuda.is_available()
    return {
        "caref": caref.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "device": torch.cuda.get_device_name() if cuda else platform.processor() or platform.machine(),
        "devices": torch.cuda.device_count() if cuda else 0,
        "threads": torch.get_num_threads(),
    }


def _commit() -> str | None:
    """The commit of caref's own checkout, marked where files differ from it; None when installed."""
    folder = Path(caref.__file__).resolve().parent
    if not (folder.parents[1] / ".git").exists():
        return None
    with suppress(OSError, subprocess.SubprocessError):
        git = ["git", "-C", str(folder)]
        # Without the option, git status writes to the checkout's index.
        quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
        commit = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=True
        )
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--", "."], capture_output=True, timeout=10, env=quiet
        )
        return commit.stdout.strip() + ("-modified" if changed.stdout.strip() else "")
    return None


def _reset_peak() -> None:
    """Ask Linux to forget the process's peak memory; elsewhere nothing."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mib() -> float:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    if sys.platform == "win32":
        return psutil.Process(os.getpid()).memory_info().peak_wset / 2**20
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
