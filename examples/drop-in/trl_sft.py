"""CarefLoss in TRL's `SFTTrainer`, on the answers alone.

    python trl_sft.py --model Qwen/Qwen2.5-0.5B --steps 100

What the loss does to a model, the barrier on the way to certainty included: docs/objective.md.
"""

import argparse
from collections.abc import Sequence

import torch
from datasets import Dataset
from pairs import PAIRS
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

from caref import CarefLoss  # CarefLoss, line 1 of 3
from caref.training.callbacks import ObjectiveCallback


def main(arguments: Sequence[str] | None = None) -> list[dict[str, float]]:
    """Train, and return the trainer's log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="Qwen/Qwen2.5-0.5B", help="a folder or a hub id")
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args(arguments)

    # A column of prompts and one of completions: SFTTrainer labels the prompts -100, they do not count.
    rows = Dataset.from_list([{"prompt": asked, "completion": " " + told} for asked, told in PAIRS])

    # A causal model's logits are about the next token: shift.
    loss = CarefLoss(shift=True)  # CarefLoss, line 2 of 3
    trainer = SFTTrainer(
        AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32),
        SFTConfig(
            "out",
            max_steps=options.steps,
            learning_rate=1e-4,
            per_device_train_batch_size=3,
            gradient_accumulation_steps=4,
            bf16=torch.cuda.is_available() and torch.cuda.is_bf16_supported(),
            logging_steps=1,
            save_strategy="no",
            report_to="none",
        ),
        train_dataset=rows,
        processing_class=AutoTokenizer.from_pretrained(options.model),
        compute_loss_func=loss,  # CarefLoss, line 3 of 3
        callbacks=[ObjectiveCallback(loss)],
    )
    trainer.train()
    return trainer.state.log_history


if __name__ == "__main__":
    main()
