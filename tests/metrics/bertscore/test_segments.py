"""The files of the cache: what was written comes back, and damage anywhere is found."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caref.metrics.bertscore import segments
from caref.metrics.bertscore.segments import DamagedFileError, key_of

SCORES = {key_of(b"a"): 0.1 + 0.2, bytes(16): -1.0, key_of(b"b"): 1.0}
VECTORS = {
    key_of(b"a"): np.arange(6, dtype=np.float32).reshape(3, 2),
    bytes(16): np.full((1, 2), 1 / 3, dtype=np.float32),
}


def read_all(path: Path) -> dict[bytes, object]:
    if path.suffix == segments.SCORES:
        return dict(segments.read_scores(path))
    with path.open("rb") as file:
        return {
            key: segments.read_vectors(file, key, place).tolist()
            for key, place in segments.read_places(path).items()
        }


@pytest.fixture(params=["scores", "vectors"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "scores":
        return segments.write_scores(tmp_path, SCORES)
    return segments.write_vectors(tmp_path, VECTORS)


def test_what_was_written_comes_back_exactly(path: Path) -> None:
    expected = SCORES if path.suffix == ".scores" else {k: v.tolist() for k, v in VECTORS.items()}
    assert read_all(path) == expected
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_change_of_any_byte_is_found(path: Path) -> None:
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        with pytest.raises(DamagedFileError, match="is not as it was written"):
            read_all(path)


def test_a_file_cut_short_or_grown_is_found(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedFileError):
            read_all(path)
    path.write_bytes(whole + b"\0" * 24)
    with pytest.raises(DamagedFileError):
        read_all(path)


@given(data=st.binary(max_size=200))
def test_a_file_of_something_else_is_found(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("x")
    for suffix in (".scores", ".vectors"):
        (folder / f"x{suffix}").write_bytes(data)
        with pytest.raises(DamagedFileError):
            read_all(folder / f"x{suffix}")


def test_vectors_of_another_text_are_not_taken(tmp_path: Path) -> None:
    path = segments.write_vectors(tmp_path, {key_of(b"a"): np.ones((1, 2)), key_of(b"b"): np.zeros((1, 2))})
    places = segments.read_places(path)
    with path.open("rb") as file, pytest.raises(DamagedFileError):
        segments.read_vectors(file, key_of(b"b"), places[key_of(b"a")])


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Path:
        raise OSError("no")

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="no"):
        segments.write_scores(tmp_path, SCORES)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_when_it_is_old(tmp_path: Path) -> None:
    for name, age in ((".1-a.scores.tmp", 4000), (".1-b.scores.tmp", 10), ("1-c.scores", 4000)):
        (tmp_path / name).touch()
        time = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (time, time))
    segments.remove_stale(tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == {".1-b.scores.tmp", "1-c.scores"}
