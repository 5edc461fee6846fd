"""The F1 of unrelated explanations with an encoder: the zero of nBERT's rescaled F1.

    python benchmarks/scripts/bertscore_baseline.py --data folder_of_data_sets --encoder offline

Explanations of the training parts of e-SNLI, ECQA, ComVE and CoS-E v1.0 are paired with explanations of
other examples of the same data set, both in lower case. No example is in two pairs, so that the pairs are
independent draws; every data set weighs the same. Prints the mean F1 of each data set and of all, with
its number of pairs and standard error, and the line for ``src/caref/metrics/bertscore/baselines.py``.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from caref.metrics.bertscore import BertScorer
from caref.tasks import get_task
from caref.tasks.example import Example

TASKS = ("esnli", "ecqa", "comve", "cos_e")
SEED = 0

Pair = tuple[str, str]


def unrelated_pairs(examples: Sequence[Example], count: int, seed: int) -> list[Pair]:
    """`count` pairs of explanations of examples whose inputs differ, no example in two of them."""
    generator = random.Random(seed)
    order = list(examples)
    generator.shuffle(order)
    pairs = []
    for one, other in zip(order[::2], order[1::2], strict=False):
        if one.fields == other.fields:  # one example that the release has in several rows
            continue
        candidate, reference = (generator.choice(each.explanations) for each in (one, other))
        if candidate.strip() and reference.strip():
            pairs.append((candidate, reference))
        if len(pairs) == count:
            return pairs
    raise SystemExit(f"{count} pairs were asked for, {len(examples)} examples give {len(pairs)}")


def baselines(
    scorer: BertScorer, pairs_of_tasks: dict[str, list[Pair]]
) -> Iterator[tuple[str, float, float]]:
    """Mean and standard error of F1 of each data set."""
    for name, pairs in pairs_of_tasks.items():
        candidates, references = [pair[0] for pair in pairs], [[pair[1]] for pair in pairs]
        f1 = scorer.f1(candidates, references, on_progress=tell(name))
        yield name, statistics.fmean(f1), statistics.stdev(f1) / math.sqrt(len(f1))


def tell(name: str):  # type: ignore[no-untyped-def]
    def progress(done: int, total: int) -> None:
        print(f"\r{name}: {done / total:4.0%}", end="\n" if done == total else "", file=sys.stderr)

    return progress


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with a folder per data set")
    parser.add_argument("--encoder", default="offline", help="directory, hub id or 'offline'")
    parser.add_argument("--layer", type=int, default=None)
    parser.add_argument("--device", default=None)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--pairs", type=int, default=3000, help="of each data set")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args(arguments)
    pairs = {
        name: unrelated_pairs(
            get_task(name).load(given.data / name, "train").examples, given.pairs, given.seed
        )
        for name in given.tasks.split(",")
    }
    scorer = BertScorer(given.encoder, given.layer, device=given.device, lowercase=True)
    rows = list(baselines(scorer, pairs))
    for name, mean, error in rows:
        print(f"{name:12} {mean:.6f} +- {error:.6f} (standard error), {len(pairs[name])} pairs")
    f1 = statistics.fmean(mean for _, mean, _ in rows)
    standard_error = math.sqrt(sum(error**2 for *_, error in rows)) / len(rows)
    total = sum(map(len, pairs.values()))
    print(f"{'all':12} {f1:.6f} +- {standard_error:.6f} (standard error), {total} pairs")
    sha256 = scorer.fingerprint()["encoder_sha256"]
    print(f"# {scorer}")
    print(f'("{sha256}", {scorer.layer}, True): Baseline({f1:.4f}, {standard_error:.4f}, {total}),')


if __name__ == "__main__":
    main()
