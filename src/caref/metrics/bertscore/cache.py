"""A cache on disk of what BERTScore computes, for any number of encoders and processes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from caref.metrics.bertscore import segments
from caref.metrics.bertscore.shelf import Shelf

EMBEDDING_BYTES = 2 * 2**30
VARIABLE = "CAREF_CACHE"
OFF = "off"


def default_folder() -> Path | None:
    """Where the cache is unless told otherwise; None where the user wants none.

    ``$CAREF_CACHE``, where ``off`` means none; else ``caref`` in ``$XDG_CACHE_HOME``, or in ``~/.cache``.
    """
    given = os.environ.get(VARIABLE, "")
    if given:
        return None if given.lower() == OFF else Path(given).expanduser()
    home = os.environ.get("XDG_CACHE_HOME", "")
    # The specification has a path that is not absolute ignored.
    return (Path(home) if Path(home).is_absolute() else Path("~/.cache").expanduser()) / "caref"


class ScoreCache:
    """F1 of pairs and embeddings of texts in a folder, for every encoder a `Shelf`.

    Any number of processes may use it at once, on a network's file system too: files are written once
    under new names and appear whole (`segments`). A process that is killed loses what it had not written,
    at most 64 MiB of embeddings and the scores of one block of pairs. A file that is damaged is found by
    its digest, removed with a warning and computed again. A folder that cannot be written, or a full
    disk, is told once, and the scores are computed without.

    Nothing is ever evicted: to make room, remove the folder; a running process goes on without it.

    Args:
        folder: Made when something is first stored.
        embedding_bytes: Above so many bytes of embeddings, all encoders together, no more are stored;
            several processes may exceed it by 64 MiB each. F1 is stored always: 24 bytes a pair.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ScoreCache(folder).shelf({"layer": 17}).add_scores({("a", "b"): 0.5})
        ...     ScoreCache(folder).shelf({"layer": 17}).scores([("a", "b"), ("b", "a")])
        {('a', 'b'): 0.5}
    """

    def __init__(self, folder: str | Path, *, embedding_bytes: int = EMBEDDING_BYTES) -> None:
        self.folder = Path(folder) / "bertscore"
        self.embedding_bytes = embedding_bytes
        self._shelves: dict[str, Shelf] = {}

    @classmethod
    def default(cls) -> ScoreCache | None:
        """The cache in `default_folder`, or None where the user wants none."""
        folder = default_folder()
        return cls(folder) if folder is not None else None

    def shelf(self, settings: Mapping[str, Any]) -> Shelf:
        """What is known of one encoder with these settings, with what other processes have added."""
        text = json.dumps(settings, sort_keys=True)
        if text not in self._shelves:
            name = segments.key_of(text.encode()).hex()
            self._shelves[text] = Shelf(self.folder / name, settings, self._room)
        self._shelves[text].refresh()
        return self._shelves[text]

    def _room(self) -> int:
        used = 0
        for path in self.folder.glob(f"*/*{segments.VECTORS}"):
            with suppress(OSError):
                used += path.stat().st_size
        return self.embedding_bytes - used
