"""How well one number goes with another: rank correlations and AUC, over data sets and systems.

Data sets and systems differ in their mean ratings, and a metric may follow these differences without
telling one explanation from another. So a correlation is given over all questions, as the mean of those
within a data set, and as the mean of those within a system's explanations of a data set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from caref.human.resampling import Places

Numbers = NDArray[np.float64]

ALL = "all questions"
MEAN_OF_TASKS = "mean of data sets"
MEAN_OF_SYSTEMS = "mean of systems within data sets"

FEWEST = 30
"""Of fewer questions no correlation and no AUC is given."""

FEWEST_ODD = 10
"""Where fewer have another number than the commonest, no correlation is given: it would be of a handful."""


@dataclass(frozen=True)
class Scopes:
    """Which data set and which system each place belongs to."""

    tasks: Sequence[str]
    systems: Sequence[str]

    @cached_property
    def of_task(self) -> dict[str, NDArray[np.bool_]]:
        """For each data set which places are its, in the order in which they appear."""
        names = np.array(self.tasks)
        return {name: names == name for name in dict.fromkeys(self.tasks)}

    @cached_property
    def of_system(self) -> dict[str, NDArray[np.bool_]]:
        """The same for each system of each data set."""
        names = np.array([f"{task}/{system}" for task, system in zip(self.tasks, self.systems, strict=True)])
        return {name: names == name for name in dict.fromkeys(names.tolist())}

    def each(self, of: Callable[[Places], float | None], places: Places) -> dict[str, float | None]:
        """A statistic in every scope; a mean of several is None where one of them is."""
        tasks = {name: of(places[inside[places]]) for name, inside in self.of_task.items()}
        systems = {name: of(places[inside[places]]) for name, inside in self.of_system.items()}
        return {
            ALL: of(places),
            MEAN_OF_TASKS: mean_of_all(list(tasks.values())),
            MEAN_OF_SYSTEMS: mean_of_all(list(systems.values())),
            **tasks,
            **systems,
        }

    def counts(self, known: NDArray[np.bool_]) -> dict[str, int]:
        """How many of the `known` places each scope has."""
        inside = {**self.of_task, **self.of_system}
        n = int(known.sum())
        return {
            **dict.fromkeys((ALL, MEAN_OF_TASKS, MEAN_OF_SYSTEMS), n),
            **{name: int((which & known).sum()) for name, which in inside.items()},
        }


def varies(numbers: Numbers) -> bool:
    """Whether there are `FEWEST` numbers, and `FEWEST_ODD` that are not the commonest; NaN is left out.

    Example:
        >>> varies(np.arange(30.0)), varies(np.eye(30)[0])
        (True, False)
    """
    counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)[1]
    return (
        bool(counts.size) and int(counts.sum()) >= FEWEST and int(counts.sum() - counts.max()) >= FEWEST_ODD
    )


def mean_of_all(values: Sequence[float | None]) -> float | None:
    """The mean, or None where one is undefined or there is none.

    Example:
        >>> mean_of_all([0.5, 1.0]), mean_of_all([0.5, None])
        (0.75, None)
    """
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def spearman(first: Numbers, second: Numbers) -> float | None:
    """Spearman's rank correlation, within [-1, 1]; pairs with a NaN are left out.

    None where either side is constant, or fewer than two pairs are left.

    Example:
        >>> round(spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 20.0])), 6)
        0.866025
    """
    from scipy.stats import rankdata

    first, second = _pairs(first, second)
    if _constant(first) or _constant(second):
        return None
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


def kendall(first: Numbers, second: Numbers) -> float | None:
    """Kendall's tau-b, within [-1, 1]; undefined as `spearman` is.

    Example:
        >>> round(kendall(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 20.0])), 6)
        0.816497
    """
    from scipy.stats import kendalltau

    first, second = _pairs(first, second)
    if _constant(first) or _constant(second):
        return None
    return float(kendalltau(first, second).statistic)


def auc(higher: Numbers, lower: Numbers) -> float | None:
    """The share of pairs of one number of each in which `higher`'s is the larger; a tie counts half.

    NaN is left out. None where a side is empty.

    Example:
        >>> auc(np.array([1.0, 3.0]), np.array([1.0, 2.0]))
        0.625
    """
    from scipy.stats import rankdata

    higher, lower = higher[~np.isnan(higher)], lower[~np.isnan(lower)]
    if not higher.size or not lower.size:
        return None
    ranks = rankdata(np.concatenate([higher, lower]))[: higher.size]
    return float((ranks.sum() - higher.size * (higher.size + 1) / 2) / (higher.size * lower.size))


def _pairs(first: Numbers, second: Numbers) -> tuple[Numbers, Numbers]:
    known = ~(np.isnan(first) | np.isnan(second))
    return first[known], second[known]


def _constant(numbers: Numbers) -> bool:
    return not numbers.size or bool((numbers == numbers[0]).all())
