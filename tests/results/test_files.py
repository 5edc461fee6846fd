from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from caref.results import files
from caref.results.files import write_atomically, write_json, write_json_lines


class CrashError(Exception):
    """What a test puts in the way of a write."""


def _crash(*args: object, **kwargs: object) -> None:
    raise CrashError


@pytest.mark.parametrize("before", [None, "old"])
@pytest.mark.parametrize(("where", "what"), [(os, "fsync"), (Path, "replace")])
def test_a_crash_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None, where: object, what: str
) -> None:
    path = tmp_path / "result.json"
    if before is not None:
        path.write_text(before)
    monkeypatch.setattr(where, what, _crash)
    with pytest.raises(CrashError):
        write_atomically(path, "new")
    assert (path.read_text() if path.exists() else None) == before
    assert [each.name for each in tmp_path.iterdir()] == (["result.json"] if before else [])


def test_a_text_that_cannot_be_encoded_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_atomically(tmp_path / "a.txt", "whole until here \ud800")
    assert list(tmp_path.iterdir()) == []


def test_the_text_is_on_disk_before_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order flush, rename, flush the folder: any other loses the text when the power fails."""
    seen: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def logged_fsync(descriptor: int) -> None:
        seen.append("fsync")
        fsync(descriptor)

    def logged_replace(self: Path, target: Path) -> Path:
        seen.append("replace")
        assert self.read_text() == "whole"
        return replace(self, target)

    monkeypatch.setattr(files.os, "fsync", logged_fsync)
    monkeypatch.setattr(Path, "replace", logged_replace)
    write_atomically(tmp_path / "a.txt", "whole")
    assert seen[:2] == ["fsync", "replace"]
    assert seen[2:] == (["fsync"] if hasattr(os, "O_DIRECTORY") else [])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_refused(tmp_path: Path, number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "a.json", {"loss": number})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json_lines(tmp_path / "a.jsonl", [{"loss": 1.0}, {"loss": number}])
    assert list(tmp_path.iterdir()) == []


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    rows = [{"text": "é\u2028\n☃", "score": None}, {"text": ""}]
    write_json_lines(tmp_path / "a.jsonl", rows)
    lines = (tmp_path / "a.jsonl").read_bytes().decode().split("\n")
    assert [json.loads(line) for line in lines[:-1]] == rows
    assert lines[-1] == ""
    assert "☃" in lines[0]  # readable without a decoder
    write_json(tmp_path / "a.json", rows)
    assert json.loads((tmp_path / "a.json").read_text()) == rows
