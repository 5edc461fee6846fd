"""What the cache holds of one encoder: F1 of pairs and embeddings of texts."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caref.metrics.bertscore import segments
from caref.metrics.bertscore.batching import Pair
from caref.metrics.bertscore.segments import DamagedFileError, Place, key_of

Tokens = tuple[int, ...]

_BUFFER_BYTES = 64 * 2**20  # of embeddings that a process holds back, and a killed one loses
_MERGE_ABOVE = 64  # files of scores


class Shelf:
    """One encoder's part of a `ScoreCache`, a folder of its own.

    Everything that decides a number is in the folder's name, as a digest of `settings`, and readable in
    its ``settings.json``. Pairs and tokens are kept as 16 bytes of a digest, not as text. Any number of
    processes may have one for the same folder; the threads of a process must not share one.

    Args:
        folder: Made when something is first written.
        settings: What decides the numbers.
        room: How many bytes of embeddings may still be stored.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], room: Callable[[], int]) -> None:
        self.folder = folder
        self.settings = settings
        self._room = room
        self._scores: dict[bytes, float] = {}
        self._places: dict[bytes, Place] = {}
        self._read: set[Path] = set()
        self._buffer: dict[bytes, NDArray[np.float32]] = {}
        self._buffered_bytes = 0
        self._prepared = False
        self._writable = True
        self._full = False

    def refresh(self) -> None:
        """Take in the files that have come since the last time, from this process or another."""
        with suppress(OSError):
            for path in sorted(set(self.folder.glob(f"*{segments.SCORES}")) - self._read):
                self._take(path, lambda path: self._scores.update(segments.read_scores(path)))
            for path in sorted(set(self.folder.glob(f"*{segments.VECTORS}")) - self._read):
                self._take(path, lambda path: self._places.update(segments.read_places(path)))

    def scores(self, pairs: Iterable[Pair]) -> dict[Pair, float]:
        """F1 of those of `pairs` that are known."""
        return {pair: self._scores[key] for pair, key in _keyed(pairs) if key in self._scores}

    def add_scores(self, scores: Mapping[Pair, float]) -> None:
        """Store F1 of pairs, in a file of their own."""
        new = {key: scores[pair] for pair, key in _keyed(scores) if key not in self._scores}
        self._scores.update(new)
        if new:
            self._write(lambda: segments.write_scores(self.folder, new))
            self._merge()

    def has_vectors(self, tokens: Tokens) -> bool:
        """Whether the vectors of a text are stored, as far as its file's index tells."""
        return _tokens_key(tokens) in self._places

    def vectors(self, sequences: Iterable[Tokens]) -> dict[Tokens, NDArray[np.float32]]:
        """The vectors, shape ``(tokens, hidden)``, of those of `sequences` that are stored."""
        wanted: dict[Path, list[tuple[bytes, Tokens]]] = {}
        for tokens in sequences:
            key = _tokens_key(tokens)
            if key in self._places and self._places[key].tokens == len(tokens):
                wanted.setdefault(self._places[key].path, []).append((key, tokens))
        found: dict[Tokens, NDArray[np.float32]] = {}
        for path, entries in wanted.items():
            try:
                with path.open("rb") as file:
                    for key, tokens in entries:
                        found[tokens] = segments.read_vectors(file, key, self._places[key])
            except DamagedFileError as error:
                self._drop(path, error)
            except OSError:  # gone: another process found it damaged, or a user made room
                self._forget(path)
        return found

    def add_vectors(self, vectors: Mapping[Tokens, NDArray[np.float32]]) -> None:
        """Store vectors of texts; those of the last 64 MiB are held back until `flush`."""
        if not self._writable or self._full:
            return
        for tokens, each in vectors.items():
            self._buffer[_tokens_key(tokens)] = each
            self._buffered_bytes += each.nbytes
        if self._buffered_bytes >= _BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is held back, as far as there is room."""
        buffer, self._buffer, self._buffered_bytes = self._buffer, {}, 0
        room, fitting = self._room(), {}
        for key, each in buffer.items():
            if key in self._places:
                continue
            room -= each.nbytes
            if room < 0:
                self._full = True
                _warn(
                    f"the cache {self.folder.parent} has as many embeddings as it may; F1 is stored still, "
                    "further embeddings are not"
                )
                break
            fitting[key] = each
        if fitting:
            self._write(lambda: segments.write_vectors(self.folder, fitting))

    def _take(self, path: Path, read: Callable[[Path], None]) -> None:
        self._read.add(path)
        try:
            read(path)
        except DamagedFileError as error:
            self._drop(path, error)
        except FileNotFoundError:  # merged by another process
            pass

    def _write(self, write: Callable[[], Path]) -> None:
        if not self._writable:
            return
        try:
            if not self._prepared:
                self._prepare()
            path = write()
        except OSError as error:
            self._writable = False
            _warn(f"the cache {self.folder} cannot be written, and nothing more is stored: {error}")
            return
        if path.suffix == segments.VECTORS:
            self._places.update(segments.read_places(path))
        self._read.add(path)

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.settings, indent=2, sort_keys=True) + "\n"
        (self.folder / "settings.json").write_text(text, encoding="utf-8")  # for people; nothing reads it
        segments.remove_stale(self.folder)
        self._prepared = True

    def _merge(self) -> None:
        """Put many files of scores into one; what another process merges meanwhile is there twice."""
        paths = list(self.folder.glob(f"*{segments.SCORES}"))
        if len(paths) <= _MERGE_ABOVE or not self._writable:
            return
        self.refresh()
        self._write(lambda: segments.write_scores(self.folder, self._scores))
        for path in paths:
            if self._writable and path in self._read:
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def _drop(self, path: Path, error: DamagedFileError) -> None:
        _warn(f"{error}; it is removed, and what it held is computed again")
        self._forget(path)
        with suppress(OSError):
            path.unlink(missing_ok=True)

    def _forget(self, path: Path) -> None:
        self._places = {key: place for key, place in self._places.items() if place.path != path}


def _keyed(pairs: Iterable[Pair]) -> Iterable[tuple[Pair, bytes]]:
    texts: dict[str, bytes] = {}
    for pair in pairs:
        for text in pair:
            if text not in texts:
                texts[text] = key_of(text.encode("utf-8", "surrogatepass"))
        yield pair, key_of(texts[pair[0]] + texts[pair[1]])


def _tokens_key(tokens: Tokens) -> bytes:
    return key_of(np.array(tokens, dtype="<u4").tobytes())


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=4)
