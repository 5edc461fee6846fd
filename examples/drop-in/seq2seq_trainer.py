"""CarefLoss in `Seq2SeqTrainer`, with its terms in the log, and SCED rising over the first 30 % of the steps.

    python seq2seq_trainer.py --model google/flan-t5-small --steps 100

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
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)

from caref import CarefLoss  # CarefLoss, line 1 of 3
from caref.models.loading import ModelSource
from caref.training.callbacks import ObjectiveCallback


def main(arguments: Sequence[str] | None = None) -> list[dict[str, float]]:
    """Train, print two answers, and return the Trainer's log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="starter", help="a folder, a hub id, or the small packaged one")
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args(arguments)

    location = ModelSource(options.model).location
    tokenizer = AutoTokenizer.from_pretrained(location)
    model = AutoModelForSeq2SeqLM.from_pretrained(location, dtype=torch.float32)
    rows = [
        {"input_ids": tokenizer(asked).input_ids, "labels": tokenizer(told).input_ids}
        for asked, told in PAIRS
    ]

    loss = CarefLoss(sced_warmup=0.3)  # CarefLoss, line 2 of 3
    trainer = Seq2SeqTrainer(
        model,
        Seq2SeqTrainingArguments(
            "out",
            max_steps=options.steps,
            learning_rate=1e-4,
            per_device_train_batch_size=3,
            gradient_accumulation_steps=4,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            # Where it generates, the loss it reports is the model's own cross-entropy.
            predict_with_generate=True,
            generation_max_length=24,
        ),
        # Given the model it prepares decoder_input_ids: the Trainer withholds the labels from the model.
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        train_dataset=rows,
        compute_loss_func=loss,  # CarefLoss, line 3 of 3
        # A warm-up has to know how far training is; the callback says it, and logs the loss's terms.
        callbacks=[ObjectiveCallback(loss)],
    )
    trainer.train()
    written = trainer.predict(rows[:2]).predictions
    for text in tokenizer.batch_decode(written.clip(min=0), skip_special_tokens=True):
        print(text)
    return trainer.state.log_history


if __name__ == "__main__":
    main()
