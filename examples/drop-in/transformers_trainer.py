"""CarefLoss in `transformers.Trainer`, with an encoder-decoder model.

    python transformers_trainer.py --model google/flan-t5-small --steps 100

What the loss does to a model, the barrier on the way to certainty included: docs/objective.md.
"""

import argparse
from collections.abc import Sequence

import torch
from pairs import PAIRS
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Trainer,
    TrainingArguments,
)

from caref import CarefLoss  # CarefLoss, line 1 of 3
from caref.models.loading import ModelSource


def main(arguments: Sequence[str] | None = None) -> list[dict[str, float]]:
    """Train, and return the Trainer's log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="starter", help="a folder, a hub id, or the small packaged one")
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args(arguments)

    location = ModelSource(options.model).location
    tokenizer = AutoTokenizer.from_pretrained(location)
    model = AutoModelForSeq2SeqLM.from_pretrained(location, dtype=torch.float32)
    rows = [
        {"input_ids": tokenizer(asked).input_ids, "labels": tokenizer(told).input_ids}
        for asked, told in PAIRS
    ]

    loss = CarefLoss()  # CarefLoss, line 2 of 3
    trainer = Trainer(
        model,
        TrainingArguments(
            "out",
            max_steps=options.steps,
            learning_rate=1e-4,
            per_device_train_batch_size=3,
            gradient_accumulation_steps=4,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
        ),
        # Given the model it prepares decoder_input_ids: the Trainer withholds the labels from the model.
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        train_dataset=rows,
        compute_loss_func=loss,  # CarefLoss, line 3 of 3
    )
    trainer.train()
    return trainer.state.log_history


if __name__ == "__main__":
    main()
