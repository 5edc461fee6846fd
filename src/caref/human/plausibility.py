"""Plausibility: how far people say that an explanation justifies its answer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from caref.human.ratings import RATINGS
from caref.metrics.result import MetricResult, given, mean_or_none, undefined
from caref.statistics.bootstrap import DRAWS, mean_interval

BEST = len(RATINGS) - 1
NO_RATINGS = "no ratings"


def question_means(ratings: Sequence[Sequence[int]]) -> list[float]:
    """The mean of each question's ratings as a number within [0, 1]: yes 1, weak yes 2/3, weak no 1/3, no 0.

    Example:
        >>> question_means([(3, 3, 3), (0, 1, 2)])
        [1.0, 0.3333333333333333]
    """
    return [math.fsum(each) / (BEST * len(each)) for each in ratings]


def plausibility(
    ratings: Sequence[Sequence[int]], owners: Sequence[str] | None = None, *, draws: int = DRAWS
) -> MetricResult:
    """The mean over questions of their mean rating, times 100, as FEB computes it.

    Args:
        ratings: The ratings of each question, 0 (no) to 3 (yes), at least one each.
        owners: Whose each rating is, where the same question was rated of several systems: it is then drawn
            as one. None: all are different.
        draws: Of the bootstrap; 0 gives no interval.

    Returns:
        ``plausibility`` within [0, 100] with its 95 % interval, ``plausibility_std``, the population
        standard deviation of the questions' means times 100, ``plausibility_standard_error``, that
        divided by the root of ``n``, and ``n``. Undefined of no question.

    Example:
        >>> round(plausibility([(3, 3, 3), (0, 0, 3)]).values["plausibility"], 2)
        66.67

    Source:
        FEB: Marasovic et al., 2022, arXiv:2111.08284.
    """
    names = ("plausibility", "plausibility_std", "plausibility_standard_error")
    if not ratings:
        return undefined(NO_RATINGS, *names, n=0)
    scores = [100 * each for each in question_means(ratings)]
    mean = mean_or_none(scores)
    assert mean is not None
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
    interval = mean_interval(scores, owners, draws=draws) if draws else None
    return MetricResult(
        values={
            "plausibility": mean,
            "plausibility_std": deviation,
            "plausibility_standard_error": deviation / math.sqrt(len(scores)),
            "n": len(scores),
        },
        intervals=given(plausibility=interval),
    )


def plausibility_by_label(ratings: Sequence[Sequence[int]], labels: Sequence[str]) -> dict[str, MetricResult]:
    """The plausibility of the questions of each label, in the order of the labels' names.

    Raises:
        ValueError: If there are not as many labels as questions.

    Example:
        >>> by_label = plausibility_by_label([(3, 3, 3), (0, 1, 2), (3, 3, 0)], ["yes", "no", "yes"])
        >>> {label: round(result.values["plausibility"]) for label, result in by_label.items()}
        {'no': 33, 'yes': 83}
    """
    groups: dict[str, list[Sequence[int]]] = {label: [] for label in sorted(set(labels))}
    for each, label in zip(ratings, labels, strict=True):
        groups[label].append(each)
    return {label: plausibility(group) for label, group in groups.items()}
