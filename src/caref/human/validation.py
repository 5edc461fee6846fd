"""Automatic metrics held against people's ratings of the same explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from caref.human.agreement import agreement
from caref.human.association import ALL
from caref.human.columns import columns
from caref.human.differences import Differences
from caref.human.plausibility import plausibility
from caref.human.ratings import RatedQuestion
from caref.human.references import other_references, same_text
from caref.human.resampling import drawn_places
from caref.human.validity import PeoplesRatings, Validity
from caref.metrics import Metric
from caref.metrics.result import MetricResult
from caref.statistics.bootstrap import DRAWS


@dataclass(frozen=True)
class Rated:
    """What people said of one system's questions: ``explanations`` is ``"gold"`` or ``"generated"``."""

    task: str
    system: str
    explanations: str
    agreement: MetricResult
    plausibility: MetricResult
    right_answers: float


@dataclass(frozen=True)
class Validation:
    """All that follows from the ratings.

    Attributes:
        n: Rated pairs of a gold and a generated explanation.
        n_questions: Distinct questions: a question may have been put to several systems.
        rated: Agreement and plausibility by task, system and explanation.
        metrics: Every number of an automatic metric that there is for each explanation.
        one_rater: One rater against the mean of the other two: what a metric can hope for.
        auc_tasks: The data sets whose mean is the AUC's `MEAN_OF_TASKS`.
        differences: None where BERTScore was left out.
        left_out: Metrics, and numbers of metrics, that say nothing here; with the reason.
    """

    n: int
    n_questions: int
    rated: Sequence[Rated]
    metrics: Sequence[Validity]
    one_rater: Validity
    auc_tasks: Sequence[str]
    differences: Differences | None
    left_out: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """Plain data, without a number that is not finite."""
        return asdict(self)


def validate(
    questions: Sequence[RatedQuestion],
    metrics: Sequence[Metric],
    *,
    data: Path | None = None,
    left_out: Mapping[str, str] | None = None,
    draws: int = DRAWS,
    on_progress: Callable[[int, int], None] | None = None,
) -> Validation:
    """Hold automatic metrics against the ratings of `questions`.

    Args:
        questions: From `read_ratings`.
        metrics: Every number that one of them has for each explanation is looked at.
        data: The folder that holds the data sets, for the references that were not shown.
        left_out: Metrics that cannot be computed here, by name, and why.
        draws: Of the bootstrap; 0 gives no intervals.
        on_progress: Told how much of how much of a metric's slow work is done.

    Raises:
        DataError: If the data cannot be read.
        ValueError: If there is no question.
    """
    if not questions:
        raise ValueError("no rated question")
    others = None if data is None else other_references(questions, data)
    found, saying_nothing = columns(
        questions, others or [()] * len(questions), metrics, on_progress=on_progress
    )
    owners = ["\n".join((each.task, *map(same_text, each.shown))) for each in questions]
    people = PeoplesRatings(questions, others, drawn_places(owners, draws=draws))
    held = [people.of_column(column) for column in found]
    rare = {
        each.name: each.spearman[ALL].note or ""
        for each in held
        if all(estimate.value is None for estimate in each.spearman.values())
    }
    return Validation(
        n=len(questions),
        n_questions=len(set(owners)),
        rated=_rated(questions, owners, draws),
        metrics=[each for each in held if each.name not in rare],
        one_rater=people.of_raters(),
        auc_tasks=people.auc_tasks,
        differences=people.differences(found, owners),
        left_out={**(left_out or {}), **saying_nothing, **rare},
    )


def _rated(questions: Sequence[RatedQuestion], owners: Sequence[str], draws: int) -> list[Rated]:
    cells: dict[tuple[str, str], list[int]] = {}
    for place, each in enumerate(questions):
        cells.setdefault((each.task, each.system), []).append(place)
    found = []
    for (task, system), places in cells.items():
        own = [owners[place] for place in places]
        here = [questions[place] for place in places]
        answers = [answer == each.gold for each in here for answer in each.answers]
        for name, ratings in (
            ("gold", [each.gold_explanation.ratings for each in here]),
            ("generated", [each.generated_explanation.ratings for each in here]),
        ):
            found.append(
                Rated(
                    task,
                    system,
                    name,
                    agreement(ratings, own, draws=draws),
                    plausibility(ratings, own, draws=draws),
                    sum(answers) / len(answers),
                )
            )
    return found
