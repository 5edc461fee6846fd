"""``caref export`` and ``caref push`` as a user calls them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Caref = Callable[..., Any]


def test_export(caref: Caref, one_run: Path, tmp_path: Path) -> None:
    ended = caref("export", one_run, tmp_path / "adapter")
    assert ended.code == 0, ended
    assert ended.out.startswith(f"adapter written to {tmp_path / 'adapter'}: ")
    ended = caref("export", one_run, tmp_path / "merged", "--merge")
    assert ended.code == 0, ended
    assert ended.out.startswith("model written to")
    assert (tmp_path / "merged" / "model.safetensors").is_file()


def test_mistakes(caref: Caref, one_run: Path, tiny_bert2bert: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "holds no complete run" in caref("export", tmp_path, out).mistake()
    assert "is there already" in caref("export", one_run, one_run).mistake()
    assert "does not fit" in caref("export", one_run, out, "--merge", "--model", tiny_bert2bert).mistake()
    assert "is not on the hub" in caref("push", one_run, "me/mine").mistake()
    assert not out.exists()


def test_push(caref: Caref, one_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def push(run: Any, repository: str, **options: Any) -> str:
        asked.update(options, repository=repository)
        return "https://hub.example/me/mine/commit/1"

    monkeypatch.setattr("caref.experiments.exporting.push", push)
    ended = caref("push", one_run, "me/mine", "--merge", "--private")
    assert ended.out == "sent to https://hub.example/me/mine/commit/1\n"
    assert asked == {"repository": "me/mine", "merge": True, "private": True, "base_id": None}
