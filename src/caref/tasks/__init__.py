"""The data sets: reading them, their labels, their prompts, and parsing an answer.

Nothing here imports torch, and listing the names imports no data set's file.
"""

from __future__ import annotations

from pathlib import Path

from caref.errors import CarefError, UnknownNameError
from caref.registry import Registry
from caref.tasks.task import Task

TASKS: Registry[Task] = Registry(
    "task",
    {
        "esnli": "caref.tasks.esnli:ESNLI",
        "ecqa": "caref.tasks.ecqa:ECQA",
        "comve": "caref.tasks.comve:COMVE",
        "cos_e": "caref.tasks.cos_e:COS_E_V1_0",
        "cos_e_v1.11": "caref.tasks.cos_e:COS_E_V1_11",
    },
)

__all__ = ["TASKS", "Task", "get_task"]


def get_task(name_or_path: str | Path) -> Task:
    """The task of that name, or the user's own task that a YAML file describes.

    Args:
        name_or_path: A name of `TASKS`, or the path of a ``.yaml`` or ``.yml`` file.

    Raises:
        UnknownNameError: If there is no such name; the message suggests the nearest.
        CarefError: If the YAML file does not describe a task.

    Example:
        >>> get_task("esnli").labels
        ('entailment', 'neutral', 'contradiction')
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
