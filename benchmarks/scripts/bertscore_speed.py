"""How long nBERT's BERTScore takes: batched and deduplicated, against one pair at a time.

    python benchmarks/scripts/bertscore_speed.py --data ecqa_folder
    python benchmarks/scripts/bertscore_speed.py --predictions run/predictions.jsonl

One pair at a time is what FEB's evaluation does. Without predictions, the candidates are the
gold explanations of other ECQA validation examples. Every round times every implementation,
and all of them have to give the same scores.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from rows import CSV, append_row, environment, paired_times, summary

from caref.generation.prediction import read_predictions
from caref.metrics.bertscore import BertScorer
from caref.metrics.encoders import find_encoder

TOLERANCE = 1e-4
BATCHED, ONE_BY_ONE, BERT_SCORE = "caref batched", "caref one pair at a time", "bert-score one pair at a time"

Texts = tuple[list[str], list[list[str]]]


def texts_of_predictions(path: Path, count: int) -> Texts:
    predictions = read_predictions(path)[:count]
    return [p.explanation for p in predictions], [list(p.gold_explanations) for p in predictions]


def texts_of_ecqa(folder: Path, count: int) -> Texts:
    """References of the first `count` examples; the next ones' explanations as candidates."""
    from caref.tasks import get_task

    examples = get_task("ecqa").load(folder, "validation").examples
    if len(examples) < 2 * count:
        raise SystemExit(f"{2 * count} ECQA examples are needed, {folder} has {len(examples)}")
    references = [list(example.explanations) for example in examples[:count]]
    return [example.explanations[0] for example in examples[count : 2 * count]], references


def one_by_one(texts: Texts, score: Callable[[str, str], float]) -> list[float]:
    return [
        max(
            score(candidate, reference) if candidate.strip() and reference.strip() else 0.0
            for reference in group
        )
        for candidate, group in zip(*texts, strict=True)
    ]


def bert_score_pair(encoder: str, layer: int, device: str) -> Callable[[str, str], float] | None:
    """bert-score's score of one pair, with the model loaded once; None where not installed."""
    try:
        from bert_score import BERTScorer
    except ImportError:
        return None
    scorer = BERTScorer(model_type=str(find_encoder(encoder).directory), num_layers=layer, device=device)

    def score(candidate: str, reference: str) -> float:
        precision, recall, f1 = (value.item() for value in scorer.score([candidate], [reference]))
        return f1 if precision * recall > 0 else 0.0  # opposite signs: see BertScorer

    return score


def run(texts: Texts, *, encoder: str, layer: int | None, device: str, rounds: int, out: Path) -> None:
    texts = [c.strip().lower() for c in texts[0]], [[r.strip().lower() for r in group] for group in texts[1]]
    scorer = BertScorer(encoder, layer, device=device)
    functions: dict[str, Callable[[], list[float]]] = {
        BATCHED: lambda: scorer.f1(*texts),
        ONE_BY_ONE: lambda: one_by_one(texts, lambda c, r: scorer.f1([c], [[r]])[0]),
    }
    pair = bert_score_pair(encoder, scorer.layer, device)
    if pair is not None:
        functions[BERT_SCORE] = lambda: one_by_one(texts, pair)

    scores = {name: function() for name, function in functions.items()}  # also the warm-up
    compared = [name for name in functions if name != BATCHED]
    if scorer.fingerprint()["prefix_space"] and pair is not None:
        compared.remove(BERT_SCORE)  # under transformers 5 it leaves RoBERTa's space out
        print(f"scores not compared with {BERT_SCORE}: it leaves out the leading space")
    for name in compared:
        error = max(abs(ours - theirs) for ours, theirs in zip(scores[BATCHED], scores[name], strict=True))
        print(f"largest difference from {name}: {error:.1e}")
        if error > TOLERANCE:
            raise SystemExit(f"scores differ from those of {name} by {error:.1e}, more than {TOLERANCE:.0e}")

    seconds = paired_times(functions, rounds=rounds)
    baseline = seconds[BERT_SCORE if pair is not None else ONE_BY_ONE]
    packages = ["torch", "transformers", *(["bert-score"] if pair is not None else [])]
    pairs = sum(len(group) for group in texts[1])
    for name in functions:
        row = {
            "benchmark": "bertscore_speed",
            "implementation": name,
            "mode": str(scorer),
            "shape": f"candidates={len(texts[0])} pairs={pairs}",
            "dtype": "float32",
            "unit": "s",
            **summary(seconds[name], baseline),
            **environment(device, packages),
        }
        append_row(out, row)
        quartiles = f"{row['median']} s [{row['q25']}, {row['q75']}]"
        print(f"{name:32} {quartiles}, {row['ratio_to_baseline']} of the baseline")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, help="folder with the ECQA release")
    source.add_argument("--predictions", type=Path, help="predictions.jsonl of a run")
    parser.add_argument("--count", type=int, default=350, help="examples")
    parser.add_argument("--encoder", default="offline", help="directory, hub id or 'offline'")
    parser.add_argument("--layer", type=int, default=None)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=CSV, help="the CSV to append to")
    given = parser.parse_args(arguments)
    texts = (
        texts_of_predictions(given.predictions, given.count)
        if given.predictions
        else texts_of_ecqa(given.data, given.count)
    )
    run(
        texts,
        encoder=given.encoder,
        layer=given.layer,
        device=given.device,
        rounds=given.rounds,
        out=given.out,
    )


if __name__ == "__main__":
    main()
