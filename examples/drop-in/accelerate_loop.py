"""CarefLoss in a loop with Accelerate, with a causal model whose prompts do not count.

    python accelerate_loop.py --model Qwen/Qwen2.5-0.5B --steps 100
    torchrun --nproc_per_node 2 accelerate_loop.py

What the loss does to a model, the barrier on the way to certainty included: docs/objective.md.
"""

import argparse
from collections.abc import Iterable, Sequence
from itertools import chain, islice, repeat
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import GradientAccumulationPlugin
from pairs import PAIRS
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForSeq2Seq

from caref import CarefLoss  # CarefLoss, line 1 of 3

ACCUMULATE = 4
"""Micro-batches of one step, in each process."""


def make_accelerator() -> Accelerator:
    """One that steps after every `ACCUMULATE` micro-batches.

    By default it steps at the end of the data too, even for each micro-batch that was read ahead of it.
    """
    return Accelerator(
        gradient_accumulation_plugin=GradientAccumulationPlugin(ACCUMULATE, sync_with_dataloader=False),
        cpu=not torch.accelerator.is_available(),  # else processes on CPUs do not know of each other
    )


def train(
    accelerator: Accelerator,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: Iterable[Any],
    steps: int,
    loss: CarefLoss,
) -> list[dict[str, float]]:
    """Train, and return the loss and its terms, a step each."""
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    batches = chain.from_iterable(repeat(loader))
    log = []
    for _ in range(steps):
        group = list(islice(batches, ACCUMULATE))
        # How many target tokens the whole step has, whatever their number in each micro-batch and process.
        tokens = accelerator.gather(sum((batch["labels"] != -100).sum() for batch in group)).sum()
        total = torch.zeros((), device=accelerator.device)
        for batch in group:
            with accelerator.accumulate(model):
                labels = batch.pop("labels")
                value = loss(model(**batch), labels, num_items_in_batch=tokens)  # CarefLoss, line 3 of 3
                # Accelerate averages over micro-batches and processes; the gradient wanted is their sum.
                accelerator.backward(value * ACCUMULATE * accelerator.num_processes)
                optimizer.step()
                optimizer.zero_grad()
            total += value.detach()
        loss_of_step = accelerator.gather(total).sum().item()
        log.append({"loss": loss_of_step, **loss.pop_components()})  # the terms are this process's own
        accelerator.print(log[-1])
    return log


def encode(tokenizer: Any, asked: str, told: str) -> dict[str, list[int]]:
    """The question, labelled -100 so that it does not count, and the answer with its end."""
    prompt = tokenizer(asked).input_ids
    answer = [*tokenizer(" " + told, add_special_tokens=False).input_ids, tokenizer.eos_token_id]
    return {"input_ids": prompt + answer, "labels": [-100] * len(prompt) + answer}


def main(arguments: Sequence[str] | None = None) -> list[dict[str, float]]:
    """Load model and data, and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="Qwen/Qwen2.5-0.5B", help="a folder or a hub id")
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args(arguments)

    tokenizer = AutoTokenizer.from_pretrained(options.model, padding_side="right")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
    rows = [encode(tokenizer, asked, told) for asked, told in PAIRS]
    loader = DataLoader(rows, batch_size=3, shuffle=True, collate_fn=DataCollatorForSeq2Seq(tokenizer))

    loss = CarefLoss(
        shift=True
    )  # CarefLoss, line 2 of 3; shift: a causal model's logit is about the next token
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    accelerator = make_accelerator()
    log = train(accelerator, model.train(), optimizer, loader, options.steps, loss)
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return log


if __name__ == "__main__":
    main()
