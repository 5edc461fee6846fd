"""Two settings that were run on the same splits, compared example by example."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from caref.errors import CarefError
from caref.results.run_directory import RunDirectory
from caref.results.setting import ScoredSplit, columns_of
from caref.statistics.paired import PairedDifference, paired_difference


def compare_runs(
    first: Sequence[RunDirectory], second: Sequence[RunDirectory], value: str
) -> PairedDifference:
    """Compare the runs of two settings by a per-example value.

    Args:
        first: Complete runs of one setting, one per seed.
        second: Those of the other, with the same seeds on the same splits.
        value: A name in ``scores.jsonl``: ``correct`` (accuracy as 0 or 1), ``nbert``, ``brier`` ...

    Raises:
        DataError: If a run is not complete or cannot be read, or has no such value.
        CarefError: If the runs were not evaluated on the same splits, or the value was not
            computed in the same way; or as in `paired_difference`.
    """
    return paired_difference(*columns_of(splits_of(first, "first"), splits_of(second, "second"), value))


def splits_of(runs: Sequence[RunDirectory], which: str) -> dict[int, ScoredSplit]:
    """The splits that runs of one setting on one task were made on.

    Args:
        runs: Complete ones.
        which: The setting, as messages call it.

    Returns:
        Seed to split.

    Raises:
        DataError: If a run is not complete or cannot be read.
        CarefError: If two have the same seed.
    """
    results = [run.read_result() for run in runs]
    found = zip(runs, results, strict=True)
    return by_seed(((result.seed, ScoredSplit.of_run(run, result)) for run, result in found), which)


def by_seed(found: Iterable[tuple[int, ScoredSplit]], which: str) -> dict[int, ScoredSplit]:
    """Seed to split.

    Raises:
        CarefError: If two have the same seed.
    """
    splits: dict[int, ScoredSplit] = {}
    for seed, split in found:
        if seed in splits:
            raise CarefError(
                f"two of the {which} runs have seed {seed}: {splits[seed].path} and {split.path}; "
                "pass the runs of one setting"
            )
        splits[seed] = split
    return splits
