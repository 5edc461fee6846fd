"""How much memory a call takes at its peak, beyond what was held before it."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch

# The profiler announces each start and stop otherwise.
os.environ.setdefault("KINETO_LOG_LEVEL", "6")


def peak_extra_bytes(function: Callable[[], object], device: str) -> int:
    """Bytes that PyTorch held at the peak of one call, less what it held before.

    The call must release nothing that was held before it: on a CPU that would not be seen. There every
    allocation and release is counted, those inside operations and of the backward pass too, but not what
    libraries such as MKL take for themselves. It makes the call slower: time another one.
    """
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        function()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    held = peak = 0
    for change in _changes(function):
        held += change
        peak = max(peak, held)
    return peak


def _changes(function: Callable[[], object]) -> list[int]:
    """Bytes of every allocation, and of every release as a negative number, in the order of time."""
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, profile_memory=True) as profiler:
        function()
    # The public events leave out what belongs to an operation, and keep only its sum.
    events = profiler.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    return [event.nbytes() for event in sorted(changes, key=lambda event: event.start_ns())]
