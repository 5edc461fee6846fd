"""One run on several processes, as ``torchrun`` and ``accelerate launch`` start them.

All of them train; the first one alone writes, answers and measures.
"""

from __future__ import annotations

import os


def process_count() -> int:
    """How many processes the launcher started; 1 without one."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_first_process() -> bool:
    """Whether this is the process that writes."""
    return process_count() == 1 or os.environ.get("RANK", "0") == "0"


def wait_for_all() -> None:
    """Return when every process has come here; the Trainer has made them known to each other."""
    if process_count() > 1:
        from accelerate import PartialState

        PartialState().wait_for_everyone()
