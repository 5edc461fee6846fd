"""The files of the cache: written once under a name of their own, never changed, checked when read.

Processes that write at the same time write different files, and a reader sees a file whole or not at
all: nothing is locked, so that a home directory on a network will do. A file is not flushed to the disk;
one that a power cut left half written does not fit its digest.
"""

from __future__ import annotations

import os
import secrets
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from time import time
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caref.errors import CarefError

KEY_BYTES = 16
SCORES, VECTORS, TEMPORARY = ".scores", ".vectors", ".tmp"

_MAGIC = b"caref-cache-1\n\0\0"
_DIGEST_BYTES = 16
_STALE_SECONDS = 3600  # a file takes seconds to write; one this old was left by a process that was killed
_SCORE = np.dtype([("key", f"V{KEY_BYTES}"), ("f1", "<f8")])
_HEADER = np.dtype([("texts", "<u8"), ("hidden", "<u8")])
_ENTRY = np.dtype([("key", f"V{KEY_BYTES}"), ("tokens", "<u4"), ("crc", "<u4")])


class DamagedFileError(CarefError):
    """A file of the cache does not hold what was written."""


class Place(NamedTuple):
    """Where the vectors of a text are: bytes from `offset`, ``tokens * hidden`` float32."""

    path: Path
    offset: int
    tokens: int
    hidden: int
    crc: int


def key_of(data: bytes) -> bytes:
    """The key of anything in the cache, 16 bytes."""
    return blake2b(data, digest_size=KEY_BYTES).digest()


def write_scores(folder: Path, scores: Mapping[bytes, float]) -> Path:
    """Write one file of scores by their key."""
    table = np.array(list(scores.items()), dtype=_SCORE).tobytes()
    return _write(folder, SCORES, [_MAGIC, _digest(table), table])


def read_scores(path: Path) -> dict[bytes, float]:
    """The scores of one file by their key.

    Raises:
        FileNotFoundError: If it is gone.
        DamagedFileError: If it is not as it was written.
    """
    data = path.read_bytes()
    table = data[len(_MAGIC) + _DIGEST_BYTES :]
    _check(path, data[: len(_MAGIC)] == _MAGIC and data[len(_MAGIC) : -len(table) or None] == _digest(table))
    rows = np.frombuffer(table, dtype=_SCORE)
    return dict(zip(rows["key"].tolist(), rows["f1"].tolist(), strict=True))


def write_vectors(folder: Path, vectors: Mapping[bytes, NDArray[np.float32]]) -> Path:
    """Write one file of vectors, each of shape ``(tokens, hidden)``, by their key."""
    parts = {key: np.ascontiguousarray(each, dtype="<f4") for key, each in vectors.items()}
    hidden = next(iter(parts.values())).shape[1]
    header = np.array((len(parts), hidden), dtype=_HEADER).tobytes()
    entries = [(key, len(each), _crc(key, each.tobytes())) for key, each in parts.items()]
    index = header + np.array(entries, dtype=_ENTRY).tobytes()
    return _write(folder, VECTORS, [_MAGIC, _digest(index), index, *(each.data for each in parts.values())])


def read_places(path: Path) -> dict[bytes, Place]:
    """Where one file has the vectors of which key; reads no vectors.

    Raises:
        FileNotFoundError: If it is gone.
        DamagedFileError: If its index or its size is not as it was written.
    """
    with path.open("rb") as file:
        magic, digest = file.read(len(_MAGIC)), file.read(_DIGEST_BYTES)
        head = file.read(_HEADER.itemsize)
        _check(path, magic == _MAGIC and len(head) == _HEADER.itemsize)
        texts, hidden = (int(number) for number in np.frombuffer(head, dtype=_HEADER)[0])
        size = os.fstat(file.fileno()).st_size
        _check(path, texts * _ENTRY.itemsize <= size)
        index = file.read(texts * _ENTRY.itemsize)
        _check(path, digest == _digest(head + index))
        offset = file.tell()
    places = {}
    for key, tokens, crc in np.frombuffer(index, dtype=_ENTRY).tolist():
        places[key] = Place(path, offset, tokens, hidden, crc)
        offset += 4 * tokens * hidden
    _check(path, offset == size)
    return places


def read_vectors(file: BinaryIO, key: bytes, place: Place) -> NDArray[np.float32]:
    """The vectors at a place of an open file, shape ``(tokens, hidden)``.

    Raises:
        DamagedFileError: If they are not as they were written.
    """
    file.seek(place.offset)
    data = file.read(4 * place.tokens * place.hidden)
    _check(place.path, place.crc == _crc(key, data))
    return np.frombuffer(data, dtype="<f4").reshape(place.tokens, place.hidden)


def remove_stale(folder: Path) -> None:
    """Remove what processes left that were killed while they wrote."""
    for path in folder.glob(f".*{TEMPORARY}"):
        with suppress(OSError):
            if path.stat().st_mtime < time() - _STALE_SECONDS:
                path.unlink()


def _write(folder: Path, suffix: str, parts: Iterable[bytes | memoryview]) -> Path:
    name = f"{os.getpid()}-{secrets.token_hex(8)}{suffix}"
    temporary = folder / f".{name}{TEMPORARY}"
    try:
        with temporary.open("xb") as file:
            for part in parts:
                file.write(part)
        return temporary.rename(folder / name)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _crc(key: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(key))


def _check(path: Path, good: bool) -> None:
    if not good:
        raise DamagedFileError(f"{path} is not as it was written")
