"""One training, on transformers' Trainer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint

from caref.models.encoding import EncodedExample
from caref.training.callbacks import ObjectiveCallback, StepCallback

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from caref.losses.objective import Objective
    from caref.training.settings import TrainingSettings


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """What a training leaves besides the weights.

    Attributes:
        steps: Optimizer steps done.
        history: The Trainer's log: loss, learning rate, gradient norm, the objective's terms, a step each.
    """

    steps: int
    history: list[dict[str, Any]]


def train(
    model: PreTrainedModel | PeftModel,
    tokenizer: PreTrainedTokenizerBase,
    examples: Sequence[EncodedExample],
    objective: Objective,
    settings: TrainingSettings,
    *,
    seed: int,
    work_dir: Path,
    report_to: Sequence[str] = (),
    run_name: str | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> TrainingResult:
    """Train the weights of `model` that require a gradient, in place.

    A checkpoint found in `work_dir` is resumed from. Two calls with the same seed on the same CPU
    give the same weights.

    Args:
        model: A model to which a method was applied.
        tokenizer: Pads the batches.
        examples: At least one; their order does not matter beyond the shuffle's seed.
        objective: Called as the Trainer's ``compute_loss_func``.
        settings: Optimizer, schedule, lengths, precision.
        seed: Of shuffling and dropout.
        work_dir: Where checkpoints go, where any are asked for.
        report_to: Names of the Trainer's reporters: ``tensorboard``, ``wandb``, ``mlflow``.
        run_name: What the reporters call this run.
        on_step: Called with steps done and steps in all.
    """
    set_seed(seed)
    steps_per_epoch = math.ceil(len(examples) / (settings.batch_size * settings.gradient_accumulation))
    total_steps = (
        settings.max_steps if settings.max_steps > 0 else math.ceil(settings.epochs * steps_per_epoch)
    )
    checkpoints = settings.checkpoint_epochs > 0
    arguments = TrainingArguments(
        output_dir=str(work_dir),
        seed=seed,
        num_train_epochs=settings.epochs,
        max_steps=settings.max_steps,
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.gradient_accumulation,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.schedule,
        warmup_steps=settings.warmup_steps or round(settings.warmup_fraction * total_steps),
        weight_decay=settings.weight_decay,
        adam_beta1=settings.adam_beta1,
        adam_beta2=settings.adam_beta2,
        adam_epsilon=settings.adam_epsilon,
        max_grad_norm=settings.max_grad_norm,
        bf16=settings.precision == "bf16",
        fp16=settings.precision == "fp16",
        activation_checkpointing=settings.gradient_checkpointing,
        save_strategy="steps" if checkpoints else "no",
        save_steps=max(1, settings.checkpoint_epochs * steps_per_epoch),
        save_total_limit=1,
        logging_strategy="steps",
        logging_steps=steps_per_epoch,
        report_to=list(report_to) or "none",
        run_name=run_name,
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=[{"input_ids": each.question.input_ids, "labels": each.labels} for each in examples],
        # Labels are popped before the forward pass where compute_loss_func is set, so the collator
        # prepares decoder_input_ids.
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        compute_loss_func=objective,
        callbacks=[ObjectiveCallback(objective), *([StepCallback(on_step)] if on_step else [])],
    )
    trainer.remove_callback(_printer())
    last = get_last_checkpoint(str(work_dir)) if checkpoints and work_dir.is_dir() else None
    trainer.train(resume_from_checkpoint=last)
    return TrainingResult(steps=trainer.state.global_step, history=list(trainer.state.log_history))


def _printer() -> type:
    """The callback that prints every log entry; the command line shows its own progress."""
    from transformers.trainer_callback import PrinterCallback

    return PrinterCallback
