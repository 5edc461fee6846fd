"""What the cache keeps, for whom, how much, and what it does when it cannot."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from caref.metrics.bertscore import ScoreCache, segments, shelf
from caref.metrics.bertscore.cache import default_folder

SETTINGS = {"encoder_sha256": "0" * 64, "layer": 17}
TOKENS = (0, 5, 2)
VECTORS = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "HOME/.cache/caref"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/caref"),
        ({"XDG_CACHE_HOME": "relative"}, "HOME/.cache/caref"),
        ({"CAREF_CACHE": "/y", "XDG_CACHE_HOME": "/x"}, "/y"),
        ({"CAREF_CACHE": "~/z"}, "HOME/z"),
        ({"CAREF_CACHE": ""}, "HOME/.cache/caref"),
        ({"CAREF_CACHE": "OFF"}, None),
    ],
)
def test_the_default_folder(
    variables: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("CAREF_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    folder = Path(expected.replace("HOME", str(tmp_path))) if expected else None
    assert default_folder() == folder
    cache = ScoreCache.default()
    assert (cache.folder if cache else None) == (folder / "bertscore" if folder else None)
    assert list(tmp_path.iterdir()) == []  # nothing is made before something is stored


def test_another_process_finds_what_was_stored(tmp_path: Path) -> None:
    first = ScoreCache(tmp_path).shelf(SETTINGS)
    first.add_scores({("a", "b"): 0.1, ("a\ud800", "c"): 0.2})
    first.add_vectors({TOKENS: VECTORS})
    assert not first.has_vectors(TOKENS)
    first.flush()
    for each in (first, ScoreCache(tmp_path).shelf(SETTINGS)):
        assert each.scores([("a", "b"), ("b", "a"), ("a\ud800", "c"), ("ab", "")]) == {
            ("a", "b"): 0.1,
            ("a\ud800", "c"): 0.2,
        }
        assert each.has_vectors(TOKENS)
        found = each.vectors([TOKENS, (0, 2), (0, 5, 2, 0)])
        assert found.keys() == {TOKENS}
        assert np.array_equal(found[TOKENS], VECTORS)


def test_what_is_stored_meanwhile_is_found_next_time(tmp_path: Path) -> None:
    one, other = ScoreCache(tmp_path), ScoreCache(tmp_path)
    assert one.shelf(SETTINGS).scores([("a", "b")]) == {}
    other.shelf(SETTINGS).add_scores({("a", "b"): 0.5})
    assert one.shelf(SETTINGS).scores([("a", "b")]) == {("a", "b"): 0.5}


@pytest.mark.parametrize("change", [{"layer": 16}, {"encoder_sha256": "1" * 64}, {"more": None}])
def test_what_decides_a_number_keeps_numbers_apart(tmp_path: Path, change: dict[str, object]) -> None:
    cache = ScoreCache(tmp_path)
    cache.shelf(SETTINGS).add_scores({("a", "b"): 0.5})
    assert cache.shelf({**SETTINGS, **change}).scores([("a", "b")]) == {}
    assert cache.shelf(dict(reversed(SETTINGS.items()))).scores([("a", "b")]) == {("a", "b"): 0.5}


@pytest.mark.parametrize("suffix", ["scores", "vectors"])
def test_a_damaged_file_is_removed_with_a_warning(tmp_path: Path, suffix: str) -> None:
    whole = ScoreCache(tmp_path).shelf(SETTINGS)
    for name in "ab":
        whole.add_scores({(name, name): 0.5})
        whole.add_vectors({(ord(name),): VECTORS[:1]})
        whole.flush()
    path = sorted(whole.folder.glob(f"*.{suffix}"))[0]
    data = bytearray(path.read_bytes())
    data[-3] ^= 4
    path.write_bytes(data)
    with pytest.warns(UserWarning, match="is not as it was written; it is removed, and what it held"):
        other = ScoreCache(tmp_path).shelf(SETTINGS)
        other.vectors([(ord("a"),), (ord("b"),)])
    assert not path.exists()
    assert len(other.scores([("a", "a"), ("b", "b")])) == (1 if suffix == "scores" else 2)
    assert len(other.vectors([(ord("a"),), (ord("b"),)])) == (1 if suffix == "vectors" else 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other.refresh()


def test_a_folder_that_was_removed_is_no_error(tmp_path: Path) -> None:
    each = ScoreCache(tmp_path).shelf(SETTINGS)
    each.add_vectors({TOKENS: VECTORS})
    each.flush()
    for path in each.folder.iterdir():
        path.unlink()
    assert each.vectors([TOKENS]) == {}
    assert not each.has_vectors(TOKENS)


def test_embeddings_stop_at_the_limit_and_scores_do_not(tmp_path: Path) -> None:
    cache = ScoreCache(tmp_path, embedding_bytes=100)
    each = cache.shelf(SETTINGS)
    each.add_vectors({(number,) * 3: VECTORS for number in range(5)})  # 24 bytes each
    with pytest.warns(UserWarning, match="has as many embeddings as it may; F1 is stored still"):
        each.flush()
    assert [each.has_vectors((number,) * 3) for number in range(5)] == [True] * 4 + [False]
    other = cache.shelf({"layer": 1})  # one limit for all encoders
    other.add_vectors({TOKENS: VECTORS})
    with pytest.warns(UserWarning, match="as many embeddings as it may"):
        other.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other.add_vectors({(1, 1, 1): VECTORS})
        other.flush()
        other.add_scores({("a", "b"): 0.5})
    assert ScoreCache(tmp_path).shelf({"layer": 1}).scores([("a", "b")])
    assert not other.has_vectors(TOKENS)


def test_much_is_not_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "_BUFFER_BYTES", 3 * VECTORS.nbytes)
    each = ScoreCache(tmp_path).shelf(SETTINGS)
    for number in range(4):
        each.add_vectors({(number,) * 3: VECTORS})
    assert [each.has_vectors((number,) * 3) for number in range(4)] == [True, True, True, False]


def test_many_files_of_scores_become_one(tmp_path: Path) -> None:
    one, other = ScoreCache(tmp_path).shelf(SETTINGS), ScoreCache(tmp_path).shelf(SETTINGS)
    for number in range(70):
        (one, other)[number % 2].add_scores({("a", str(number)): number / 100})
    assert len(list(one.folder.glob("*.scores"))) < 10
    pairs = [("a", str(number)) for number in range(70)]
    found = ScoreCache(tmp_path).shelf(SETTINGS).scores(pairs)
    assert found == {pair: number / 100 for number, pair in enumerate(pairs)}


def test_scores_that_are_known_are_not_written_again(tmp_path: Path) -> None:
    each = ScoreCache(tmp_path).shelf(SETTINGS)
    each.add_scores({("a", "b"): 0.5})
    each.add_scores({("a", "b"): 0.5})
    assert len(list(each.folder.glob("*.scores"))) == 1


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "bertscore").write_text("a file where the folder would be")
    each = ScoreCache(tmp_path).shelf(SETTINGS)
    assert each.scores([("a", "b")]) == {}
    with pytest.warns(UserWarning, match="cannot be written, and nothing more is stored") as told:
        for number in range(3):
            each.add_scores({("a", str(number)): 0.5})
            each.add_vectors({TOKENS: VECTORS})
            each.flush()
    assert len(told) == 1
    assert each.scores([("a", "1")]) == {("a", "1"): 0.5}  # known to this process


FULL_DISK = """
import resource, sys, warnings, numpy as np
from caref.metrics.bertscore import ScoreCache
cache = ScoreCache(sys.argv[1]).shelf({"layer": 1})
cache.add_scores({("a", "b"): 0.5})
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    cache.add_vectors({(1,): np.ones((1, 4096), np.float32)})
    cache.flush()
    cache.add_scores({("a", "c"): 0.5})
assert [str(each.message) for each in told if "cannot be written" in str(each.message)], told
assert len(told) == 1, told
"""


def test_a_disk_without_room_leaves_no_half_file(tmp_path: Path) -> None:
    """A limit on the size of files: writing fails in the middle, as on a full disk."""
    pytest.importorskip("resource")
    subprocess.run([sys.executable, "-c", FULL_DISK, tmp_path], check=True)
    each = ScoreCache(tmp_path).shelf({"layer": 1})
    names = sorted(path.suffix for path in each.folder.iterdir())
    assert names == [".json", segments.SCORES]
    assert each.scores([("a", "b"), ("a", "c")]) == {("a", "b"): 0.5}
