"""The real releases: exact counts, and no row refused. Skipped where they are absent."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from caref.tasks import TASKS, get_task

FROM_FILES = [name for name in TASKS if get_task(name).generate is None]

COUNTS = {
    ("esnli", "train", "ukplab"): (2560, 2560, 2560),
    ("esnli", "validation", "ukplab"): (120, 120, 120),
    ("esnli", "train", "ye_durrett"): (336, 336, 316),
    ("esnli", "validation", "ye_durrett"): (345, 340, 315),
    ("esnli", "validation", "las-tokenised"): (3329, 3235, 3278),
    ("esnli", "test", "las-tokenised"): (3368, 3219, 3237),
    ("comve", "train", "release-csv"): (14937, 15063),
    ("comve", "validation", "release-csv"): (518, 479),
    ("comve", "test", "release-csv"): (508, 492),
    ("ecqa", "train", "positives-jsonl"): 7112,
    ("ecqa", "train", "flan-tsv"): 7112,
    ("ecqa", "validation", "joined-csv"): 1090,
    ("ecqa", "test", "joined-csv"): 2194,
    ("cos_e", "train", "processed"): 7610,
    ("cos_e", "validation", "processed"): 950,
    ("cos_e", "train", "raw"): 7610,
    ("cos_e", "validation", "raw"): 950,
    ("cos_e_v1.11", "train", "processed"): 9741,
    ("cos_e_v1.11", "validation", "processed"): 1221,
    ("cos_e_v1.11", "train", "raw"): 9741,
    ("cos_e_v1.11", "validation", "raw"): 1221,
}
DEFAULTS = {
    (name, part): next(key[2] for key in COUNTS if key[:2] == (name, part)) for name, part, _ in COUNTS
}


@pytest.mark.parametrize(("name", "part", "data_format"), COUNTS)
def test_counts(name: str, part: str, data_format: str, shared: Path) -> None:
    task = get_task(name)
    pool = task.load(shared / "data", part, data_format=data_format)
    answers = Counter(example.answer for example in pool)
    found = tuple(answers[label] for label in task.labels) if task.labels else len(pool)
    assert found == COUNTS[name, part, data_format]
    assert len({example.id for example in pool}) == len(pool)


@pytest.mark.parametrize(("name", "part"), DEFAULTS)
def test_format_that_is_chosen(name: str, part: str, shared: Path) -> None:
    assert get_task(name).find(shared / "data", part)[0].name == DEFAULTS[name, part]


def test_both_sources_of_ecqa_train_agree(shared: Path) -> None:
    task = get_task("ecqa")
    derived, flan = (
        {example.id: example for example in task.load(shared / "data", "train", data_format=each)}
        for each in ("positives-jsonl", "flan-tsv")
    )
    assert derived == flan


@pytest.mark.parametrize("name", FROM_FILES)
def test_every_example_renders(name: str, shared: Path) -> None:
    task = get_task(name)
    for example in task.load(shared / "data", "validation"):
        for format_ in task.prompts.values():
            prompt = format_.render(example)
            assert prompt.answer in prompt.candidates
            assert prompt.target.startswith(f"{prompt.answer} because ")
