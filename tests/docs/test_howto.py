"""What stands on the how-to pages runs, in the order in which it stands there.

A block after ``<!-- slow -->`` runs with the slow tests only; one after ``<!-- hub -->`` needs a model hub or
the real data sets, and nothing runs it. Lines between ``<!-- output -->`` and ``<!-- end -->`` are what
the quick commands print.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "howto").glob("*.md"))
BLOCK = re.compile(r"^(?:<!-- (slow|hub) -->\n)?```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"^<!-- output -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    marker: str
    language: str
    code: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(page.read_text(encoding="utf-8"))]


def run(page: Path, chosen: list[Block], folder: Path) -> str:
    """All of a page's bash as one script, then all of its Python as one program; what they print."""
    printed = []
    scripts = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "CAREF_CACHE": "off",
    }
    for language, command in (
        ("bash", ["bash", "-euo", "pipefail", "-c"]),
        ("python", [sys.executable, "-c"]),
    ):
        code = "\n".join(block.code for block in chosen if block.language == language)
        if code:
            done = subprocess.run(
                [*command, code], cwd=folder, env=environment, capture_output=True, text=True, timeout=280
            )
            assert done.returncode == 0, f"{page.name}, {language}:\n{done.stdout}\n{done.stderr}"
            printed.append(done.stdout)
    return "".join(printed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_block_is_overlooked(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(blocks(page)) == len(re.findall(r"^```(?:bash|python)$", text, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_quick_commands_run(page: Path, tmp_path: Path) -> None:
    printed = run(page, [block for block in blocks(page) if not block.marker], tmp_path).splitlines()
    shown = [line for text in OUTPUT.findall(page.read_text(encoding="utf-8")) for line in text.splitlines()]
    assert [line for line in shown if line not in printed] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(b.marker == "slow" for b in blocks(page))],
    ids=lambda page: page.stem,
)
def test_all_commands_run_that_need_no_hub(page: Path, tmp_path: Path) -> None:
    run(page, [block for block in blocks(page) if block.marker != "hub"], tmp_path)


def test_links_lead_somewhere() -> None:
    for page in [*PAGES, *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http://", "https://", "mailto:")):
                assert (page.parent / target).exists(), f"{page.name}: {target}"
