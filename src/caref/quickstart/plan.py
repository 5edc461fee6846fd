"""What the quickstart runs: four tasks, the model as it is, and the same model tuned with two losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caref.experiments.flat import spec_from_flat
from caref.experiments.spec import RunSpec
from caref.protocol.seeds import FEB_SEEDS

MODEL = "starter"
TASKS = ("starter_nli", "starter_choice5", "starter_nonsense", "starter_choice3")

BEFORE, CE, CAREF = "before", "CE", "CAREF"

ROLES: dict[str, dict[str, Any]] = {
    # Nothing is trained: the loss is named because a run has to name one.
    BEFORE: {"objective": "ce", "epochs": 0},
    CE: {"objective": "ce"},
    CAREF: {"objective": "caref"},
}
"""What the runs of each role have of their own."""

SETTINGS: dict[str, Any] = {
    "model": MODEL,
    "method": "aq",
    "shots": 48,
    "eval_size": 120,
    "epochs": 25,
    "batch_size": 8,
    "learning_rate": 4e-3,
    "max_new_tokens": 32,
    "encoder": "offline",
}
"""What they share."""

ABOUT = (
    "Four tasks about a small world, made from a table of facts for this purpose: they have the form of "
    "e-SNLI, ECQA, ComVE and CoS-E and none of their data. The model is a T5 of a few million weights that "
    "was taught the facts, and not the tasks. On every split it is asked as it is, then tuned on 48 examples "
    "with cross-entropy (CE) and, from the same start, with CAREF, and asked again.",
)
NOT_SHOWN = (
    "How the losses compare on a model of useful size or on real questions. This model has learnt a table of "
    "facts and nothing else; a difference here need not be there with another, nor the other way round.",
    "Whether an explanation is why the model gave its answer. nBERT and F1 measure how close its words are "
    "to the reference's, no more.",
    "Numbers that compare with published ones: the tasks are others, and so is nBERT's encoder.",
    "The best of either loss: both have the same settings, the same for all tasks. The learning rate was "
    "chosen with CE on another split (number 50), which may favour CE.",
)


LAST = (
    "A model of a few million weights that knows a made-up world: what is told here is about it alone. The "
    "report says what else it does not show."
)


def planned_runs(splits: Sequence[int], **changes: Any) -> dict[str, list[RunSpec]]:
    """Every run of the quickstart, by role and in the order of tasks and splits.

    Args:
        splits: FEB's, by number.
        **changes: Settings by plain name that are to differ from `SETTINGS`, not from a role's own; None
            leaves one out.
    """
    runs: dict[str, list[RunSpec]] = {}
    for role, own in ROLES.items():
        given = {name: value for name, value in {**SETTINGS, **changes, **own}.items() if value is not None}
        settings = [spec_from_flat({**given, "task": task}) for task in TASKS]
        runs[role] = [spec.with_seed(FEB_SEEDS[split]) for spec in settings for split in splits]
    return runs
