"""How long BERTScore of many runs takes: once per distinct text, against every pair as it comes.

    python benchmarks/scripts/bertscore_cache.py --runs folder_of_runs

Scores the predictions of all complete runs below the folder, several methods on the same splits, with

- a plain batched scorer: 64 pairs at a time in the order of the predictions, both sides of every pair
  embedded, no text or pair recognised, nothing sorted by length; same encoder, layer and library;
- ours with an empty cache on disk, in this process;
- ours with the cache that this left, in a fresh process: its start, its imports and the loading of the
  encoder are in the time.

Every round times all of them on the same pairs, and the scores have to agree within 1e-5. bert-score's
own `score` is timed beside them on a sample of the predictions: it embeds equal texts of one call once,
so that its time for all cannot be read off a sample, nor off the plain scorer. Its scores are not held
to ours: in a batch it lets padding, with a similarity of 0, be the best match of a token whose real
similarities are all negative (pair by pair it agrees), and under transformers 5 it leaves out RoBERTa's
leading space.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

import torch
from rows import CSV, append_row, environment, paired_times, summary
from torch.nn.functional import normalize

from caref.generation.prediction import read_predictions
from caref.metrics.bertscore import BertScorer, ScoreCache
from caref.metrics.encoders import find_encoder

TOLERANCE = 1e-5
BATCH_PAIRS = 64
PLAIN, COLD, WARM = "plain batches of 64 pairs", "caref, cache empty", "caref, cache warm, fresh process"
BERT_SCORE = "bert-score, one call"

Texts = tuple[list[str], list[list[str]]]
Score = Callable[[Texts], list[float]]


def texts_of_runs(folder: Path, splits: int | None) -> tuple[Texts, Counter[str]]:
    """Explanations and references of complete runs, at most `splits` of a method; how many runs each has."""
    candidates: list[str] = []
    references: list[list[str]] = []
    methods: Counter[str] = Counter()
    for result in sorted(folder.rglob("result.json")):
        told = json.loads(result.read_text(encoding="utf-8"))
        method = f"{told['method']} {told['objective']}"
        if splits is not None and methods[method] == splits:
            continue
        methods[method] += 1
        for prediction in read_predictions(result.parent / "predictions.jsonl"):
            candidates.append(prediction.explanation.strip().lower())
            references.append([text.strip().lower() for text in prediction.gold_explanations])
    return (candidates, references), methods


@torch.inference_mode()
def plain(texts: Texts, scorer: BertScorer) -> list[float]:
    """The best F1 of each candidate, its pairs embedded and compared 64 at a time as they come."""
    pairs = [(c, r) for c, group in zip(*texts, strict=True) for r in group]
    scores: list[float] = []
    shown = Shown(PLAIN)
    for start in range(0, len(pairs), BATCH_PAIRS):
        batch = pairs[start : start + BATCH_PAIRS]
        candidate, candidate_real, candidate_counted = embedded([c for c, _ in batch], scorer)
        reference, reference_real, reference_counted = embedded([r for _, r in batch], scorer)
        similarity = candidate @ reference.transpose(1, 2)
        best = similarity.masked_fill(~reference_real[:, None, :], -torch.inf).amax(dim=2)
        precision = (best * candidate_counted).sum(1) / candidate_counted.sum(1).clamp(min=1)
        best = similarity.masked_fill(~candidate_real[:, :, None], -torch.inf).amax(dim=1)
        recall = (best * reference_counted).sum(1) / reference_counted.sum(1).clamp(min=1)
        f1 = torch.where(precision * recall > 0, 2 * precision * recall / (precision + recall), 0.0)
        scores += f1.clamp(-1, 1).tolist()
        shown(len(scores), len(pairs))
    found = iter([f1 if c and r else 0.0 for f1, (c, r) in zip(scores, pairs, strict=True)])
    return [max((next(found) for _ in group), default=0.0) for group in texts[1]]


def embedded(texts: Sequence[str], scorer: BertScorer) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Unit vectors of one batch, padded; which tokens are real; 1.0 for those averaged over."""
    encoder = scorer.encoder
    encoded = encoder.tokenizer(
        [" " + text for text in texts] if encoder.prefix_space else list(texts),
        truncation=encoder.max_tokens is not None,
        max_length=encoder.max_tokens,
        padding=True,
        return_token_type_ids=False,
        return_tensors="pt",
    ).to(scorer.device)
    ids, mask = encoded["input_ids"], encoded["attention_mask"]
    vectors = normalize(encoder.model(ids, attention_mask=mask)[0].float(), dim=-1)
    outer = (ids == encoder.tokenizer.cls_token_id) | (ids == encoder.tokenizer.sep_token_id)
    return vectors, mask.bool(), (mask.bool() & ~outer).float()


def bert_score(scorer: BertScorer, encoder: str) -> Score | None:
    """bert-score's `score` of all pairs in one call; None where it is not installed."""
    try:
        from bert_score import BERTScorer
    except ImportError:
        return None
    directory = str(find_encoder(encoder).directory)
    theirs = BERTScorer(model_type=directory, num_layers=scorer.layer, device=str(scorer.device))

    def score(texts: Texts) -> list[float]:
        pairs = [(c, r) for c, group in zip(*texts, strict=True) for r in group]
        whole = [pair for pair in pairs if all(pair)]  # under transformers 5 it fails on blank texts
        f1 = theirs.score(*map(list, zip(*whole, strict=True)), batch_size=BATCH_PAIRS)[2].tolist()
        found = dict(zip(whole, f1, strict=True))
        return [
            max((found.get((c, r), 0.0) for r in group), default=0.0) for c, group in zip(*texts, strict=True)
        ]

    return score


class Shown:
    """A line on standard error with the share that is done, twice a second."""

    def __init__(self, name: str) -> None:
        self.name, self.last = name, perf_counter()

    def __call__(self, done: int, total: int) -> None:
        if done == total or perf_counter() - self.last > 0.5:
            self.last = perf_counter()
            end = "\n" if done == total else ""
            print(f"\r{self.name}: {done / total:4.0%}", end=end, file=sys.stderr, flush=True)


def difference(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return max((abs(a - b) for a, b in zip(ours, theirs, strict=True)), default=0.0)


class Benchmark:
    """The scorers on the same texts; each remembers its scores."""

    def __init__(self, texts: Texts, given: argparse.Namespace, folder: Path) -> None:
        self.texts, self.given, self.folder = texts, given, folder
        self.scorer = BertScorer(given.encoder, given.layer, device=given.device, lowercase=True)
        self.scores: dict[str, list[float]] = {}
        self.texts_file = folder / "texts.json"
        self.texts_file.write_text(json.dumps(texts), encoding="utf-8")
        self.caches = 0
        self.filled = folder / "cache-1"

    def functions(self) -> dict[str, Callable[[], None]]:
        return {PLAIN: self.plain, COLD: self.cold, WARM: self.warm}

    def plain(self) -> None:
        self.scores[PLAIN] = plain(self.texts, self.scorer)

    def cold(self) -> None:
        shutil.rmtree(self.filled, ignore_errors=True)
        self.caches += 1
        self.filled = self.folder / f"cache-{self.caches}"
        self.scorer.cache = ScoreCache(self.filled)
        self.scores[COLD] = self.scorer.f1(*self.texts, on_progress=Shown(COLD))

    def warm(self) -> None:
        out = self.folder / "warm.json"
        options = ["--encoder", self.given.encoder, "--device", self.given.device]
        if self.given.layer is not None:
            options += ["--layer", str(self.given.layer)]
        files = [str(self.filled), str(self.texts_file), str(out)]
        subprocess.run([sys.executable, __file__, *options, "--warm", *files], check=True)
        self.scores[WARM] = json.loads(out.read_text(encoding="utf-8"))


def warm(given: argparse.Namespace) -> None:
    """What the fresh process does."""
    cache, texts, out = map(Path, given.warm)
    scorer = BertScorer(
        given.encoder, given.layer, device=given.device, lowercase=True, cache=ScoreCache(cache)
    )
    out.write_text(json.dumps(scorer.f1(*json.loads(texts.read_text(encoding="utf-8")))), encoding="utf-8")


def shape(texts: Texts, what: str) -> str:
    pairs = [(c, r) for c, group in zip(*texts, strict=True) for r in group]
    distinct = set(pairs)
    return (
        f"{what} predictions={len(texts[0])} pairs={len(pairs)} distinct_pairs={len(distinct)} "
        f"distinct_texts={len({text for pair in distinct for text in pair})}"
    )


def report(
    seconds: dict[str, list[float]], baseline: str, texts: Texts, what: str, scorer: BertScorer, out: Path
) -> None:
    device = str(scorer.device)
    packages = ["torch", "transformers", *(["bert-score"] if BERT_SCORE in seconds else [])]
    for name, values in seconds.items():
        row = {
            "benchmark": "bertscore_cache",
            "implementation": name,
            "mode": str(scorer),
            "shape": shape(texts, what),
            "dtype": "float32",
            "unit": "s",
            **summary(values, seconds[baseline]),
            **environment(device, packages),
        }
        append_row(out, row)
        ratio = float(str(row["ratio_to_baseline"]))
        print(f"{name:34} {row['median']} s [{row['q25']}, {row['q75']}], {1 / ratio:.1f} times as fast")


def check(name: str, error: float) -> None:
    print(f"largest difference from {name}: {error:.1e}")
    if error > TOLERANCE:
        raise SystemExit(f"scores differ from those of {name} by {error:.1e}, more than {TOLERANCE:.0e}")


def run(given: argparse.Namespace) -> None:
    texts, methods = texts_of_runs(given.runs, given.splits)
    if not texts[0]:
        raise SystemExit(f"no complete run, which has a result.json, is below {given.runs}")
    print(", ".join(f"{name}: {count} runs" for name, count in methods.items()))
    what = f"methods={len(methods)} runs={methods.total()}"
    print(shape(texts, what))
    with tempfile.TemporaryDirectory() as folder:
        benchmark = Benchmark(texts, given, Path(folder))
        scorer = benchmark.scorer
        scorer.f1(texts[0][:64], texts[1][:64])  # the warm-up
        seconds = paired_times(benchmark.functions(), rounds=given.rounds)
        for name in (COLD, WARM):
            check(f"{PLAIN}, of {name}", difference(benchmark.scores[PLAIN], benchmark.scores[name]))
        report(seconds, PLAIN, texts, what, scorer, given.out)
        scorer.cache = None
        sample = sampled(texts, given.sample)
        theirs = bert_score(scorer, given.encoder)
        if theirs is not None:
            on_sample(sample, theirs, scorer, given)


def sampled(texts: Texts, count: int) -> Texts:
    """Some of the predictions, drawn without replacement, in their order."""
    places = sorted(random.Random(0).sample(range(len(texts[0])), min(count, len(texts[0]))))
    return [texts[0][place] for place in places], [texts[1][place] for place in places]


def on_sample(sample: Texts, theirs: Score, scorer: BertScorer, given: argparse.Namespace) -> None:
    """bert-score, the plain scorer and ours without a cache on a sample of the predictions."""
    ours = "caref, no cache"
    functions: dict[str, Callable[[], list[float]]] = {
        BERT_SCORE: lambda: theirs(sample),
        PLAIN: lambda: plain(sample, scorer),
        ours: lambda: scorer.f1(*sample),
    }
    scores = {name: call() for name, call in functions.items()}  # also the warm-up
    check(PLAIN, difference(scores[ours], scores[PLAIN]))
    reason = "RoBERTa's leading space" if scorer.encoder.prefix_space else "its padding's similarity of 0"
    error = difference(scores[ours], scores[BERT_SCORE])
    print(f"largest difference from {BERT_SCORE}: {error:.1e}, by {reason} where above {TOLERANCE:.0e}")
    report(paired_times(functions, rounds=given.rounds), BERT_SCORE, sample, "sample", scorer, given.out)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, help="folder with complete runs at any depth")
    parser.add_argument("--splits", type=int, default=None, help="at most so many runs of a method")
    parser.add_argument("--encoder", default="offline", help="directory, hub id or 'offline'")
    parser.add_argument("--layer", type=int, default=None)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sample", type=int, default=2000, help="predictions that bert-score is timed on")
    parser.add_argument("--out", type=Path, default=CSV, help="the CSV to append to")
    parser.add_argument("--warm", nargs=3, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.warm:
        warm(given)
    elif given.runs is None:
        parser.error("--runs is needed")
    else:
        run(given)


if __name__ == "__main__":
    main()
