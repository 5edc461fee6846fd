"""Writing a file so that it is there whole or not at all."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

TEMPORARY = ".tmp"
"""How the name of a file ends that is being written; a killed process leaves one behind."""


def write_atomically(path: Path, text: str) -> None:
    """Write a text file through a temporary one beside it, flushed to disk, then renamed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _flush_directory(path.parent)


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, atomically; NaN is refused."""
    write_atomically(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_json_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write one JSON object per line, atomically; NaN is refused."""
    lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    write_atomically(path, "".join(lines))


def _flush_directory(folder: Path) -> None:
    """Make a rename durable, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
