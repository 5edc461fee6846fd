"""What lies in ``examples/``: it has to work as it stands there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from caref.tasks import get_task

OWN_TASK = Path(__file__).parents[1] / "examples" / "own-task" / "everyday.yaml"


@pytest.mark.parametrize(("part", "size"), [("train", 48), ("validation", 24)])
def test_own_task_is_balanced_and_can_be_parsed_back(part: str, size: int) -> None:
    task = get_task(str(OWN_TASK))
    examples = list(task.load(None, part))
    rendered = [task.prompts["feb"].render(example) for example in examples]

    assert Counter(example.answer for example in examples) == {"yes": size // 2, "no": size // 2}
    assert len({example.fields["question"] for example in examples}) == size
    assert all(prompt.target.count("because") == 1 for prompt in rendered)


def test_parts_of_own_task_share_no_question() -> None:
    task = get_task(str(OWN_TASK))
    train, validation = (
        {example.fields["question"] for example in task.load(None, part)} for part in ("train", "validation")
    )

    assert not train & validation
