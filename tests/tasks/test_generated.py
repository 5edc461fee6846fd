"""Tasks that make their examples, and tasks with settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from caref.errors import CarefError, DataError
from caref.tasks import Task, get_task
from caref.tasks.example import Example

Generated = list[tuple[str, int]]


def giving(task: Task, *examples: Example) -> Task:
    """The same task with other examples."""

    def generate(part: str) -> Iterable[Example]:
        return examples

    return replace(task, generate=generate)


def test_a_part_is_generated(parity: Generated) -> None:
    task = get_task("parity", {"size": 3})
    train, validation = task.load(None, "train"), task.load(part="validation")
    assert parity == [("train", 3), ("validation", 3)]
    assert [example.id for example in train] == ["0", "1", "2"]
    assert [example.answer for example in validation] == ["no", "yes", "no"]
    assert (train.data_format, train.files, train.problems) == ("generated", (), ())
    assert task.prompts["feb"].render(train.examples[1]).input == "is 1 even?"
    with pytest.raises(DataError, match="parity has no test part with explanations; it has: train, valid"):
        task.load(None, "test")


def test_no_settings_are_the_defaults(parity: Generated) -> None:
    assert get_task("parity").load().examples == get_task("parity", {"size": 40}).load().examples
    assert get_task("parity", {"asked": "odd"}).load().examples[0].answer == "no"


def test_it_takes_no_files(parity: Generated, tmp_path: Path) -> None:
    task = get_task("parity")
    with pytest.raises(DataError, match=r"^parity is generated; pass no data folder$"):
        task.load(tmp_path)
    with pytest.raises(DataError, match=r"^parity is generated; pass no data format$"):
        task.load(data_format="csv")
    with pytest.raises(DataError, match=r"^parity is generated; pass no data folder$"):
        task.find(tmp_path, "train")
    assert parity == []


def test_what_is_generated_is_checked(parity: Generated) -> None:
    task = get_task("parity")
    good, other = task.load().examples[:2]
    with pytest.raises(DataError, match=r"generated:2: duplicate id '0', first seen at generated:1"):
        giving(task, good, good, other).load()
    bad = giving(task, good, replace(other, answer="maybe"))
    with pytest.raises(DataError, match=r"generated:2: answer 'maybe' is not among the choices: no, yes"):
        bad.load()
    skipped = bad.load(skip_bad_rows=True)
    assert (skipped.examples, [problem.line for problem in skipped.problems]) == ((good,), [2])
    with pytest.raises(DataError, match="no usable row in generated"):
        giving(task).load()


def test_a_wrong_setting_is_one_line(parity: Generated) -> None:
    for settings, told in (
        ({"siez": 3}, "'siez' is not a setting of the task 'parity'; did you mean 'size'?"),
        ({"zzz": 3}, "'zzz' is not a setting of the task 'parity'; it has: size, asked, noise"),
        ({"size": 3.5}, "size of the task 'parity' must be of type int, got 3.5"),
        ({"asked": "prime"}, "asked of the task 'parity' must be one of even, odd, got 'prime'"),
        ({"size": 1}, "size must be at least 2, got 1"),
    ):
        with pytest.raises(CarefError) as raised:
            get_task("parity", settings)
        assert str(raised.value) == told


def test_a_task_without_settings_refuses_any(samples: Path) -> None:
    with pytest.raises(CarefError) as raised:
        get_task("esnli", {"size": 3})
    assert str(raised.value) == "'size' is not a setting of the task 'esnli'; it has: none"
    own = samples / "own" / "colours.yaml"
    with pytest.raises(CarefError) as raised:
        get_task(own, {"size": 3})
    assert str(raised.value) == f"'size' is not a setting of the task '{own}'; it has: none"
    assert get_task("esnli", {}) is get_task("esnli")
