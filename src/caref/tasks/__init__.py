"""The data sets: reading them, their labels, their prompts, and parsing an answer.

Nothing here imports torch, and listing the names imports no data set's file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from caref.errors import CarefError, UnknownNameError
from caref.registry import Registry
from caref.settings import resolved_settings
from caref.tasks.task import Task

TaskEntry = Task | Callable[..., Task]
"""A task, or a function that makes one: its keywords are the task's settings."""

TASKS: Registry[TaskEntry] = Registry(
    "task",
    {
        "esnli": "caref.tasks.esnli:ESNLI",
        "ecqa": "caref.tasks.ecqa:ECQA",
        "comve": "caref.tasks.comve:COMVE",
        "cos_e": "caref.tasks.cos_e:COS_E_V1_0",
        "cos_e_v1.11": "caref.tasks.cos_e:COS_E_V1_11",
        "starter_nli": "caref.tasks.starter.tasks:NLI",
        "starter_choice5": "caref.tasks.starter.tasks:CHOICE5",
        "starter_nonsense": "caref.tasks.starter.tasks:NONSENSE",
        "starter_choice3": "caref.tasks.starter.tasks:CHOICE3",
    },
)

__all__ = ["TASKS", "Task", "TaskEntry", "get_task", "task_entry"]


def get_task(name_or_path: str | Path, settings: Mapping[str, Any] | None = None) -> Task:
    """The task of that name, or the user's own task that a YAML file describes.

    Args:
        name_or_path: A name of `TASKS`, or the path of a ``.yaml`` or ``.yml`` file.
        settings: The task's settings, those of them that are not to be the defaults.

    Raises:
        UnknownNameError: If there is no such name; the message suggests the nearest.
        CarefError: If the YAML file does not describe a task, or a setting is not one of the task's or
            does not fit.

    Example:
        >>> get_task("esnli").labels
        ('entailment', 'neutral', 'contradiction')
    """
    entry = task_entry(name_or_path)
    resolved = resolved_settings("task", str(name_or_path), entry, settings or {})
    if isinstance(entry, Task):
        return entry
    try:
        return entry(**resolved)
    except CarefError:
        raise
    except ValueError as error:
        raise CarefError(str(error)) from error


def task_entry(name_or_path: str | Path) -> TaskEntry:
    """What makes the task of that name: the entry of `TASKS`, or the task that a YAML file describes.

    Raises:
        UnknownNameError: If there is no such name; the message suggests the nearest.
        CarefError: If the YAML file does not describe a task.
    """
    if Path(name_or_path).suffix in {".yaml", ".yml"}:
        from caref.tasks.custom import load_task

        task = load_task(Path(name_or_path))
        if task.name in TASKS:
            raise CarefError(f"{name_or_path}: name: {task.name!r} is a task already; choose another name")
        return task
    try:
        return TASKS.get(str(name_or_path))
    except UnknownNameError as error:
        raise UnknownNameError(f"{error} (or give the path of a YAML file of your own)") from None
