from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Caref = Callable[..., Any]
TWO = ("--objective", "kl", "--objective", "sced")


def test_text(caref: Caref) -> None:
    ended = caref("properties", *TWO)
    assert (ended.code, ended.err) == (0, "")
    assert "sced (alpha=1)" in ended.out
    assert "depends (paper: yes)" in ended.out
    assert "  sparse: no; shrinks from 0 of 6 starts" in ended.out


def test_json_and_markdown_tell_the_same(caref: Caref) -> None:
    rows = json.loads(caref("properties", *TWO, "--format", "json").out)
    assert [row["objective"] for row in rows] == ["kl", "sced", "sced (alpha=1)"]
    lines = caref("properties", *TWO, "--format", "markdown").out.splitlines()
    assert len(lines) == 2 + len(rows)
    for row, line in zip(rows, lines[2:], strict=True):
        assert line.startswith(f"| {row['objective']} | {row['measured']} |")
        for finding in row["findings"].values():
            assert finding["evidence"] in line
            assert (f"**{finding['verdict']} (paper:" in line) or finding["paper"] in (
                None,
                finding["verdict"],
            )


def test_an_unknown_objective(caref: Caref) -> None:
    told = caref("properties", "--objective", "carf").mistake()
    assert told == "unknown objective 'carf'; did you mean 'caref'? See: caref list objectives"
