"""``caref quickstart``, as a new user runs it: offline, from nothing, and again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

from caref.tasks import get_task

TASK = str(resources.files("caref.quickstart") / "everyday.yaml")


def quickstart(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "caref", "quickstart", *arguments],
        cwd=cwd,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("part", "size"), [("train", 48), ("validation", 24)])
def test_sentences_are_balanced_and_can_be_parsed_back(part: str, size: int) -> None:
    task = get_task(TASK)
    examples = list(task.load(None, part))
    rendered = [task.prompts["feb"].render(example) for example in examples]

    assert Counter(example.answer for example in examples) == {"yes": size // 2, "no": size // 2}
    assert len({example.fields["question"] for example in examples}) == size
    assert all(prompt.target.count("because") == 1 for prompt in rendered)


def test_parts_share_no_question() -> None:
    task = get_task(TASK)
    train, validation = (
        {example.fields["question"] for example in task.load(None, part)} for part in ("train", "validation")
    )

    assert not train & validation


@pytest.mark.slow
def test_quickstart_runs_offline_and_again_does_only_what_is_missing(tmp_path: Path) -> None:
    first = quickstart(cwd=tmp_path)

    assert first.returncode == 0, first.stderr
    assert "not how\ngood the method is" in first.stdout
    assert first.stdout.count("generated  ") == 3
    assert first.stdout.rstrip().splitlines()[-1].startswith("written to quickstart")
    results = sorted((tmp_path / "quickstart" / "runs").glob("*/result.json"))
    assert Counter(json.loads(path.read_text("utf-8"))["objective"] for path in results) == {
        "ce": 2,
        "caref": 2,
    }
    assert [path.name for path in tmp_path.iterdir()] == ["quickstart"]

    weights = tmp_path / "quickstart" / "tiny-t5" / "model.safetensors"
    before = weights.read_bytes(), [path.stat().st_mtime_ns for path in results]
    again = quickstart(cwd=tmp_path)

    assert again.returncode == 0, again.stderr
    assert "4 of 4 runs are complete already" in again.stderr
    assert (weights.read_bytes(), [path.stat().st_mtime_ns for path in results]) == before


def test_an_output_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")

    told = quickstart("--out", "taken", cwd=tmp_path)

    assert told.returncode == 2
    assert told.stderr.startswith("caref: ")
    assert len(told.stderr.strip().splitlines()) == 1
