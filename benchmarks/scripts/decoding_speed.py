"""How long greedy decoding takes: in batches sorted by length, against one example at a time.

    python benchmarks/scripts/decoding_speed.py --model model_folder --data ecqa_folder

One example at a time, with transformers' own `generate`, is what FEB's evaluation does. Every round
times both, and both have to give the same texts. The untrained base model is decoded: what matters
here is how many tokens, not which. A run's directory can be given instead (--run), whose model
writes what it has learnt to write.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from rows import CSV, append_row, environment, paired_times, summary

from caref.generation.answering import answer
from caref.generation.decoding import greedy_config
from caref.models.encoding import Encoder
from caref.models.loading import ModelSource, load_model, load_tokenizer
from caref.tasks import get_task

BATCHED, ONE_BY_ONE = "caref batched", "transformers one example at a time"


def load(model: str | None, run: Path | None, task_name: str) -> tuple[torch.nn.Module, Encoder]:
    if run is not None:
        from caref.experiments.predicting import TrainedRun

        trained = TrainedRun.load(run)
        return trained.model, trained.encoder
    source = ModelSource(str(model))
    loaded = load_model(source)
    prompt = get_task(task_name).prompts["feb"]
    return loaded, Encoder(load_tokenizer(source), prompt, loaded.config)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--model", help="a model's directory or hub id")
    source.add_argument("--run", type=Path, help="the directory of a complete run")
    parser.add_argument("--task", default="ecqa")
    parser.add_argument("--data", type=Path, required=True, help="folder with the task's release")
    parser.add_argument("--count", type=int, default=350, help="examples")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--max-new-tokens", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=CSV, help="the CSV to append to")
    given = parser.parse_args(arguments)

    model, encoder = load(given.model, given.run, given.task)
    model.to(given.device).eval()
    pool = get_task(given.task).load(given.data, "validation")
    questions = [encoder.ask(example)[0] for example in pool.examples[: given.count]]
    config = greedy_config(model, given.max_new_tokens)

    def batched() -> list[str]:
        answers = answer(
            model,
            encoder,
            questions,
            max_new_tokens=given.max_new_tokens,
            batch_size=given.batch_size,
            confidence=False,
        )
        return [each.text for each in answers]

    @torch.inference_mode()
    def one_by_one() -> list[str]:
        texts = []
        for question in questions:
            ids = torch.tensor([question.input_ids], device=given.device)
            mask = torch.ones_like(ids)
            (tokens,) = model.generate(input_ids=ids, attention_mask=mask, generation_config=config)
            texts.append(encoder.text(tokens.tolist()))
        return texts

    texts = batched()
    alone = one_by_one()
    different = sum(ours != theirs for ours, theirs in zip(texts, alone, strict=True))
    print(f"different texts: {different} of {len(texts)}")
    if different:
        raise SystemExit("batched decoding must give the texts of decoding one example at a time")

    seconds = paired_times({BATCHED: batched, ONE_BY_ONE: one_by_one}, rounds=given.rounds)
    words = sum(len(text.split()) for text in texts) / len(texts)
    for name, values in seconds.items():
        row = {
            "benchmark": "decoding_speed",
            "implementation": name,
            "mode": f"{given.run.name if given.run else Path(given.model).name} {given.task}, greedy",
            "shape": f"examples={len(texts)} batch={given.batch_size if name == BATCHED else 1} "
            f"words={words:.1f}",
            "dtype": "float32",
            "unit": "s",
            **summary(values, seconds[ONE_BY_ONE]),
            **environment(given.device),
        }
        append_row(given.out, row)
        quartiles = f"{row['median']} s [{row['q25']}, {row['q75']}]"
        print(f"{name:36} {quartiles}, {row['ratio_to_baseline']} of the baseline")


if __name__ == "__main__":
    main()
