"""What every task of the registry must do; a new one is tested the day it is added."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from caref.errors import UnknownNameError
from caref.tasks import TASKS, get_task
from caref.tasks.parsing import parse_answer
from caref.tasks.pool import Part, Pool

PARTS = [(name, part) for name in TASKS for part in get_task(name).parts]
FORMATS = [
    (name, each.name, part) for name in TASKS for each in get_task(name).formats for part in each.files
]


FROM_FILES = [name for name in TASKS if get_task(name).generate is None]
GENERATED = [name for name in TASKS if name not in FROM_FILES]


def sample(name: str, part: Part, samples: Path) -> Pool:
    """A part of a task: of our own writing where it is read, in full where it is generated."""
    return get_task(name).load(samples if name in FROM_FILES else None, part)


@pytest.mark.parametrize("name", TASKS)
def test_facts(name: str) -> None:
    task = get_task(name)
    assert task.name == name
    assert task.source.startswith("https://") or (task.generate and "caref/tasks/" in task.source)
    assert task.licence
    assert {"train", "validation"} <= set(task.parts)
    assert {"feb", "instruction", "chat"} <= set(task.prompts)
    assert all(key == prompt.name for key, prompt in task.prompts.items())
    assert task.prompts["chat"].chat and not task.prompts["feb"].chat
    assert len({each.name for each in task.formats}) == len(task.formats)
    assert bool(task.formats) == (task.generate is None)


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_prompts_of_every_example(name: str, part: Part, samples: Path) -> None:
    task = get_task(name)
    for example in sample(name, part, samples):
        assert example.answer in example.choices
        assert not task.labels or example.choices == task.labels
        for format_ in task.prompts.values():
            prompt = format_.render(example)
            assert prompt.id == example.id
            assert prompt.answer in prompt.candidates
            assert len(set(prompt.candidates)) == len(prompt.candidates)
            assert "{" not in prompt.input and "}" not in prompt.input
            parsed = parse_answer(prompt.target, prompt.separator)
            assert not parsed.broken
            assert parsed.answer == prompt.answer
            assert parsed.explanation == prompt.explanation.partition(prompt.separator)[0]


@pytest.mark.parametrize(("name", "data_format", "part"), FORMATS)
def test_every_format_has_a_sample(name: str, data_format: str, part: str, samples: Path) -> None:
    pool = get_task(name).load(samples, part, data_format=data_format)
    assert pool.data_format == data_format
    assert len(pool) >= 2
    assert pool.problems == ()
    assert pool.files and all(file.is_file() for file in pool.files)


@pytest.mark.parametrize("name", FROM_FILES)
def test_own_folder_and_its_parent_give_the_same(name: str, samples: Path) -> None:
    task = get_task(name)
    own = next(samples / folder for folder in task.folders if (samples / folder).is_dir())
    assert task.load(own, "train").examples == task.load(samples, "train").examples


@pytest.mark.parametrize("name", GENERATED)
def test_what_is_generated_is_the_same_each_time(name: str) -> None:
    for part in get_task(name).parts:
        assert get_task(name).load(None, part) == get_task(name).load(None, part)


def test_misspelt_name() -> None:
    with pytest.raises(UnknownNameError, match="unknown task 'esnly'; did you mean 'esnli'"):
        get_task("esnly")


def test_importing_every_task_stays_light() -> None:
    code = (
        "import sys, caref.tasks as tasks, caref.protocol; list(tasks.TASKS.items()); "
        "heavy = {'torch', 'transformers', 'datasets', 'pyarrow', 'yaml', 'pydantic'} & set(sys.modules); "
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
    assert done.returncode == 0
