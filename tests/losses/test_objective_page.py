"""The Python blocks of docs/objective.md run, in order, as a reader would run them."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "objective.md"


def test_code_blocks_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 3
    names: dict[str, object] = {}
    for block in blocks:
        lines_before = text.count("\n", 0, block.start(1))
        exec(compile("\n" * lines_before + block[1], str(PAGE), "exec"), names)
