"""A ranking of several settings over all splits of all tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from caref.results.setting import Setting, columns_of
from caref.results.values import ComparedValue
from caref.statistics.ranking import Ranking, rank


@dataclass(frozen=True, slots=True)
class RankedBy:
    """A ranking, and by what.

    Attributes:
        value: By which the settings are ranked.
        ranking: Over the blocks: each split of each task is one.
    """

    value: ComparedValue
    ranking: Ranking


def rankings(settings: Sequence[Setting], values: Sequence[ComparedValue]) -> list[RankedBy]:
    """Rank settings by each value that all of them have and that has a better end.

    A block is a split of a task; its value is the mean over the examples for which every setting has one.

    Raises:
        CarefError: If splits or examples differ, or a value was not computed in the same way.
    """
    found = []
    for value in values:
        if value.same_column and value.higher_is_better is not None:
            blocks = _blocks(settings, value)
            if blocks is not None:
                found.append(RankedBy(value, rank(blocks, higher_is_better=value.higher_is_better)))
    return found


def _blocks(settings: Sequence[Setting], value: ComparedValue) -> dict[str, list[float]] | None:
    """Setting to its mean in every block; None where a setting lacks the value, or none has a block."""
    first, *others = settings
    blocks: dict[str, list[float]] = {setting.name: [] for setting in settings}
    for task in first.tasks:
        if any(task not in setting.tasks for setting in others):
            continue
        sides = [setting.tasks[task] for setting in settings]
        if any(value.column not in split.columns for splits in sides for split in splits.values()):
            return None
        columns = [columns_of(sides[0], side, value.column)[1] for side in sides]
        for key in sides[0]:
            common = [
                example
                for example in columns[0][key]
                if all(column[key].get(example) is not None for column in columns)
            ]
            if not common:
                continue
            for setting, column in zip(settings, columns, strict=True):
                numbers = [number for example in common if (number := column[key][example]) is not None]
                blocks[setting.name].append(math.fsum(numbers) / len(numbers))
    return blocks if blocks[first.name] else None
