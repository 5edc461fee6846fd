"""Drawing one few-shot split: the same for every library version, machine and file order.

Examples are ranked by a hash of seed, part and example id, and the first ones are taken. So the 16
shots of one seed are among its 32, and adding a row to a pool moves at most one row of a draw.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from caref.errors import CarefError, DataError
from caref.tasks.example import Example

SHOTS = 48
EVAL_SIZE = 350


@dataclass(frozen=True, slots=True)
class Split:
    """What one model is trained and evaluated on.

    Attributes:
        task: The task's name.
        seed: What it was drawn with.
        train: The shots, in the order of the draw, labels mixed.
        validation: The evaluation examples, likewise.
    """

    task: str
    seed: int
    train: tuple[Example, ...]
    validation: tuple[Example, ...]

    @property
    def checksum(self) -> str:
        """SHA-256 of the ids in their order: equal checksums mean the same draw."""
        ids = [[example.id for example in part] for part in (self.train, self.validation)]
        return hashlib.sha256(json.dumps(ids).encode()).hexdigest()


def draw_split(
    task_name: str,
    labels: Sequence[str],
    train_pool: Iterable[Example],
    validation_pool: Iterable[Example],
    *,
    seed: int,
    shots: int = SHOTS,
    eval_size: int = EVAL_SIZE,
) -> Split:
    """Draw the training and the evaluation examples of one seed.

    What is drawn for training is never evaluated in the same split: examples that ask the same
    (equal fields and choices) leave the validation pool first. FEB does not do that, although its ECQA lists
    overlap. Ids are not compared: ComVE numbers each part anew.

    Args:
        task_name: Recorded in the split.
        labels: The task's fixed labels, over which both draws are balanced; empty for none.
        train_pool: Where the shots come from, in any order.
        validation_pool: Where the evaluation examples come from, in any order; may be the same.
        seed: Any integer; FEB's are `FEB_SEEDS`.
        shots: Training examples in all, a multiple of the number of labels.
        eval_size: Evaluation examples in all; with labels, ``eval_size // len(labels)`` of each, so
            FEB's 350 makes 348 for three labels.

    Raises:
        CarefError: If the sizes do not fit the labels.
        DataError: If a pool holds too few examples; the message says which size would work.
    """
    parts = max(len(labels), 1)
    if shots < 1 or shots % parts:
        below = shots // parts * parts
        fitting = " or ".join(str(size) for size in (below, below + parts) if size > 0)
        raise CarefError(
            f"shots must be a positive multiple of {parts}, the number of labels, got {shots}; try {fitting}"
        )
    if eval_size < parts:
        raise CarefError(f"eval_size must be at least {parts}, got {eval_size}")

    train = _draw(train_pool, labels, shots // parts, seed=seed, part="train", setting="shots")
    asked = {_question(example) for example in train}
    unseen = [example for example in validation_pool if _question(example) not in asked]
    validation = _draw(unseen, labels, eval_size // parts, seed=seed, part="validation", setting="eval_size")
    return Split(task_name, seed, train, validation)


def _draw(
    pool: Iterable[Example], labels: Sequence[str], count: int, *, seed: int, part: str, setting: str
) -> tuple[Example, ...]:
    """The first `count` by rank, of each label where there are any."""
    ranked = sorted(pool, key=lambda example: _rank(example, seed, part))
    if not labels:
        groups = {"": ranked}
    else:
        groups = {label: [example for example in ranked if example.answer == label] for label in labels}
    for label, group in groups.items():
        if len(group) < count:
            what = f"examples with label {label!r}" if label else "examples"
            size = min(map(len, groups.values())) * len(groups)
            advice = f"pass {setting}={size} or less" if size else "there are none to draw"
            raise DataError(f"{part}: {count} {what} are to be drawn, {len(group)} are there; {advice}")
    drawn = [example for group in groups.values() for example in group[:count]]
    return tuple(sorted(drawn, key=lambda example: _rank(example, seed, part)))


def _rank(example: Example, seed: int, part: str) -> str:
    return hashlib.sha256(f"{seed}\x1f{part}\x1f{example.id}".encode()).hexdigest()


def _question(example: Example) -> Hashable:
    """What an example asks, without its answer and explanations."""
    return tuple(sorted(example.fields.items())), example.choices
