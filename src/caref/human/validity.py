"""How well the numbers of a metric, or one rater's, go with people's ratings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from caref.human.association import (
    FEWEST,
    FEWEST_ODD,
    MEAN_OF_SYSTEMS,
    MEAN_OF_TASKS,
    Scopes,
    auc,
    kendall,
    mean_of_all,
    spearman,
    varies,
)
from caref.human.columns import Column, Numbers
from caref.human.differences import Differences, bins, system_pairs
from caref.human.plausibility import question_means
from caref.human.ratings import RATERS, RatedQuestion
from caref.human.resampling import Estimate, Places, estimates

BERTSCORE = "bertscore_f1"
"""The factor of nBERT that is of the explanation; the other one is accuracy."""

FEW_ODD = f"fewer than {FEWEST_ODD} explanations have another number than the commonest"
NO_DATA = "needs other references than the explanation that was shown; the data sets were not given"


@dataclass(frozen=True)
class Validity:
    """How well one number of a metric, or people themselves, go with people's ratings.

    Attributes:
        name: Of the number.
        metric: The metric that gives it.
        needs_reference: Whether it compares with references.
        spearman: Scope to the correlation with the mean rating of the generated explanation.
        kendall: The same as tau-b.
        auc: Scope to the share of pairs of a gold and a generated explanation in which the gold one has the
            higher number.
    """

    name: str
    metric: str
    needs_reference: bool
    spearman: Mapping[str, Estimate]
    kendall: Mapping[str, Estimate]
    auc: Mapping[str, Estimate]


class PeoplesRatings:
    """The ratings as numbers, to hold columns against.

    Args:
        questions: The rated questions.
        others: For each the references that were not shown; None where the data sets were not given.
        drawn: From `drawn_places`, a question being one owner whatever systems answered it.
    """

    def __init__(
        self,
        questions: Sequence[RatedQuestion],
        others: Sequence[Sequence[str]] | None,
        drawn: Sequence[Places],
    ) -> None:
        self.scopes = Scopes([each.task for each in questions], [each.system for each in questions])
        self.drawn = drawn
        self.generated = np.array([each.generated_explanation.ratings for each in questions], dtype=float)
        self.gold = np.array([each.gold_explanation.ratings for each in questions], dtype=float)
        self.mean_rating = np.array(question_means([e.generated_explanation.ratings for e in questions]))
        self.data_given = others is not None
        has_other = np.array([bool(own) for own in others or [()] * len(questions)])
        enough = [
            name for name, inside in self.scopes.of_task.items() if (has_other & inside).sum() >= FEWEST
        ]
        self.auc_tasks = enough or list(self.scopes.of_task)

    def of_column(self, column: Column) -> Validity:
        """A metric's numbers against the mean rating."""
        return Validity(
            column.name,
            column.metric,
            column.needs_reference,
            spearman=self._correlated(spearman, [(column.generated, self.mean_rating)]),
            kendall=self._correlated(kendall, [(column.generated, self.mean_rating)]),
            auc=self._separated(
                [(column.gold_elsewhere, column.generated_elsewhere)], column.needs_reference
            ),
        )

    def of_raters(self) -> Validity:
        """Each rater against the mean of the others; the three results' mean."""
        sides = [
            (self.generated[:, each], np.delete(self.generated, each, axis=1).mean(axis=1))
            for each in range(RATERS)
        ]
        return Validity(
            "one rater",
            "people",
            False,
            spearman=self._correlated(spearman, sides),
            kendall=self._correlated(kendall, sides),
            auc=self._separated(
                [(self.gold[:, each], self.generated[:, each]) for each in range(RATERS)], False
            ),
        )

    def differences(self, found: Sequence[Column], owners: Sequence[str]) -> Differences | None:
        """What a difference in BERTScore says."""
        column = next((each for each in found if each.name == BERTSCORE), None)
        if column is None:
            return None
        given = (column.generated, self.mean_rating, self.scopes)
        return Differences(
            column.computed_by,
            bins(*given, self.drawn),
            bins(*given, self.drawn, questions=owners),
            list(system_pairs(*given)),
        )

    def _correlated(
        self, of: Callable[[Numbers, Numbers], float | None], sides: Sequence[tuple[Numbers, Numbers]]
    ) -> dict[str, Estimate]:
        known = ~np.isnan(sides[0][0])
        counts = self.scopes.counts(known)

        def statistic(places: Places) -> float | None:
            if not varies(sides[0][0][places]):
                return None
            return mean_of_all([of(first[places], second[places]) for first, second in sides])

        notes = {name: _why(count, FEW_ODD, "explanations have a number") for name, count in counts.items()}
        notes |= dict.fromkeys((MEAN_OF_TASKS, MEAN_OF_SYSTEMS), "one of them is undefined")
        return estimates(
            lambda places: self.scopes.each(statistic, places), counts, notes, len(known), self.drawn
        )

    def _separated(
        self, sides: Sequence[tuple[Numbers, Numbers]], needs_reference: bool
    ) -> dict[str, Estimate]:
        known = ~(np.isnan(sides[0][0]) | np.isnan(sides[0][1]))
        tasks = {name: inside & known for name, inside in self.scopes.of_task.items()}
        counts = {name: int(inside.sum()) for name, inside in tasks.items()}

        def statistics(places: Places) -> dict[str, float | None]:
            within = {name: places[inside[places]] for name, inside in tasks.items()}
            each = {
                name: mean_of_all([auc(gold[some], generated[some]) for gold, generated in sides])
                if len(some) >= FEWEST
                else None
                for name, some in within.items()
            }
            return {MEAN_OF_TASKS: mean_of_all([each[name] for name in self.auc_tasks]), **each}

        counts[MEAN_OF_TASKS] = sum(counts[name] for name in self.auc_tasks)
        what = (
            "questions have a reference that was not shown" if needs_reference else "questions have a number"
        )
        notes = {
            name: NO_DATA if needs_reference and not self.data_given else _why(count, FEW_ODD, what)
            for name, count in counts.items()
        }
        return estimates(statistics, counts, notes, len(known), self.drawn)


def _why(count: int, otherwise: str, what: str) -> str:
    return f"only {count} {what}; at least {FEWEST} are needed" if count < FEWEST else otherwise
