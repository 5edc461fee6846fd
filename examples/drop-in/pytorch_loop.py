"""CarefLoss in a loop of PyTorch alone, in one process or several.

    python pytorch_loop.py --model google/flan-t5-small --steps 100
    torchrun --nproc_per_node 2 pytorch_loop.py

What the loss does to a model, the barrier on the way to certainty included: docs/objective.md.
"""

import argparse
import os
from collections.abc import Iterable, Sequence
from itertools import chain, islice, repeat
from typing import Any

import torch
import torch.distributed as dist
from pairs import PAIRS
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, DataCollatorForSeq2Seq

from caref import CarefLoss  # CarefLoss, line 1 of 3
from caref.models.loading import ModelSource

ACCUMULATE = 4
"""Micro-batches of one step, in each process."""


def train(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: Iterable[Any],
    steps: int,
    loss: CarefLoss,
) -> list[dict[str, float]]:
    """Train, and return the loss and its terms, a step each."""
    processes = dist.get_world_size() if dist.is_initialized() else 1
    device = next(model.parameters()).device
    batches = chain.from_iterable(repeat(loader))
    log = []
    for _ in range(steps):
        group = [batch.to(device) for batch in islice(batches, ACCUMULATE)]
        # How many target tokens the whole step has, whatever their number in each micro-batch and process.
        tokens = sum((batch["labels"] != -100).sum() for batch in group)
        if processes > 1:
            dist.all_reduce(tokens)
        total = torch.zeros((), device=device)
        for batch in group:
            labels = batch.pop("labels")
            value = loss(model(**batch), labels, num_items_in_batch=tokens)  # CarefLoss, line 3 of 3
            (value * processes).backward()  # DDP averages over processes; the gradient wanted is their sum
            total += value.detach()
        optimizer.step()
        optimizer.zero_grad()
        if processes > 1:
            dist.all_reduce(total)
        log.append({"loss": total.item(), **loss.pop_components()})  # the terms are this process's own
        if processes == 1 or dist.get_rank() == 0:
            print(log[-1])
    return log


def main(arguments: Sequence[str] | None = None) -> list[dict[str, float]]:
    """Load model and data, and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="starter", help="a folder, a hub id, or the small packaged one")
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args(arguments)

    location = ModelSource(options.model).location
    tokenizer = AutoTokenizer.from_pretrained(location)
    model = AutoModelForSeq2SeqLM.from_pretrained(location, dtype=torch.float32)
    # The collator makes decoder_input_ids of the labels, which the loop keeps from the model.
    collator = DataCollatorForSeq2Seq(tokenizer, model=model)
    rows = [
        {"input_ids": tokenizer(asked).input_ids, "labels": tokenizer(told).input_ids}
        for asked, told in PAIRS
    ]
    sampler = None
    if "RANK" in os.environ:  # started by torchrun
        dist.init_process_group()
        sampler = DistributedSampler(rows)
    if torch.accelerator.is_available():
        model.to(
            torch.device(torch.accelerator.current_accelerator().type, int(os.environ.get("LOCAL_RANK", 0)))
        )
    if sampler is not None:
        model = DistributedDataParallel(model)

    loss = CarefLoss()  # CarefLoss, line 2 of 3
    loader = DataLoader(rows, batch_size=3, collate_fn=collator, sampler=sampler, shuffle=sampler is None)
    log = train(model.train(), torch.optim.AdamW(model.parameters(), lr=1e-4), loader, options.steps, loss)
    if sampler is not None:
        dist.barrier()  # gloo's threads let go of their tensors; torch may hang without it
        dist.destroy_process_group()
    return log


if __name__ == "__main__":
    main()
