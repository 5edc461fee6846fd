"""One training, on transformers' Trainer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments, set_seed

from caref.errors import CarefError
from caref.kernels.backends import choose_backend
from caref.kernels.head import defer_head, why_not_deferred
from caref.models.encoding import EncodedExample
from caref.training.callbacks import ObjectiveCallback, StepCallback, UpdateCallback, UpdateHooks
from caref.training.reference import with_reference_logits

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
        computed_by: What computed the objective: a kernel, or ``eager``; None where nothing was trained.
    """

    steps: int
    history: list[dict[str, Any]]
    computed_by: str | None = None


def train(
    model: PreTrainedModel | PeftModel,
    tokenizer: PreTrainedTokenizerBase,
    examples: Sequence[EncodedExample],
    objective: Objective,
    settings: TrainingSettings,
    *,
    seed: int,
    work_dir: Path,
    hooks: UpdateHooks | None = None,
    report_to: Sequence[str] = (),
    run_name: str | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> TrainingResult:
    """Train the weights of `model` that require a gradient, in place.

    Without a step to do, at 0 epochs, the weights stay as they are and no Trainer is made.

    A checkpoint found in `work_dir` is resumed from. Two calls with the same seed on the same CPU
    give the same weights.

    Args:
        model: A model to which a method was applied.
        tokenizer: Pads the batches.
        examples: At least one; their order does not matter beyond the shuffle's seed.
        objective: Called as the Trainer's ``compute_loss_func``. Where it has a fused kernel, it is given
            hidden states and the model's head, and no logits are made but by the chunk. Where it needs the
            base's logits, every step makes a second forward pass for them.
        settings: Optimizer, schedule, lengths, precision.
        seed: Of shuffling and dropout.
        work_dir: Where checkpoints go, where any are asked for.
        hooks: Called around every optimizer step; the method that was applied.
        report_to: Names of the Trainer's reporters: ``tensorboard``, ``wandb``, ``mlflow``.
        run_name: What the reporters call this run.
        on_step: Called with steps done and steps in all.

    Raises:
        CarefError: If the settings do not suit the model's adapter, or the objective's kernel cannot run.
    """
    check_trainable(model, settings, objective)
    if settings.epochs == 0 and settings.max_steps <= 0:
        return TrainingResult(steps=0, history=[])
    set_seed(seed)
    checkpoints = settings.checkpoint_epochs > 0
    arguments = TrainingArguments(
        output_dir=str(work_dir),
        seed=seed,
        # Said outright, so that several processes on CPUs alone know of each other.
        use_cpu=not torch.accelerator.is_available(),
        num_train_epochs=settings.epochs,
        max_steps=settings.max_steps,
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.gradient_accumulation,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.schedule,
        # Below 1 it is a share of all steps.
        warmup_steps=settings.warmup_steps or settings.warmup_fraction,
        weight_decay=settings.weight_decay,
        adam_beta1=settings.adam_beta1,
        adam_beta2=settings.adam_beta2,
        adam_epsilon=settings.adam_epsilon,
        max_grad_norm=settings.max_grad_norm,
        bf16=settings.precision == "bf16",
        fp16=settings.precision == "fp16",
        activation_checkpointing=settings.gradient_checkpointing,
        save_strategy="steps" if checkpoints else "no",
        save_total_limit=1,
        logging_strategy="steps",
        report_to=list(report_to) or "none",
        run_name=run_name,
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    # Known only now: how many devices share a step.
    step_size = arguments.train_batch_size * arguments.world_size * settings.gradient_accumulation
    arguments.logging_steps = math.ceil(len(examples) / step_size)
    arguments.save_steps = max(1, settings.checkpoint_epochs) * arguments.logging_steps
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=[{"input_ids": each.question.input_ids, "labels": each.labels} for each in examples],
        # Labels are popped before the forward pass where compute_loss_func is set, so the collator
        # prepares decoder_input_ids.
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model)
        if model.config.is_encoder_decoder
        else partial(_joined, padding=tokenizer.pad_token_id),
        compute_loss_func=objective if model.config.is_encoder_decoder else partial(_of_tokens, objective),
        callbacks=[StepCallback(on_step)] if on_step else [],
    )
    trainer.remove_callback(_printer())
    if hooks is not None:
        trainer.add_callback(UpdateCallback(hooks, model))
    # First of all: the reporters that follow write the terms too.
    trainer.callback_handler.callbacks.insert(0, ObjectiveCallback(objective))
    reference = (
        with_reference_logits(model, autocast=trainer.accelerator.autocast)
        if objective.needs_reference
        else nullcontext()
    )
    # Several GPUs in one process gather the outputs of their copies, which must be tensors then.
    deferred = objective.has_kernel and objective.fused != "off" and arguments.n_gpu <= 1
    head = defer_head(model) if deferred and why_not_deferred(model) is None else nullcontext()
    with reference, head:
        trainer.train(resume_from_checkpoint=_last_checkpoint(work_dir) if checkpoints else None)
    return TrainingResult(trainer.state.global_step, list(trainer.state.log_history), objective.ran)


def check_trainable(
    model: PreTrainedModel | PeftModel, settings: TrainingSettings, objective: Objective
) -> None:
    """Refuse settings under which an adapter cannot be trained, or an objective not be computed.

    Raises:
        CarefError: If activations were to be recomputed with a prefix: a layer that is, has no cache; or if
            the kernel that is asked for cannot run here.
    """
    from peft import PeftModel, PeftType

    prefixed = isinstance(model, PeftModel) and model.active_peft_config.peft_type == PeftType.PREFIX_TUNING
    if settings.gradient_checkpointing and prefixed:
        raise CarefError("prefix tuning cannot be trained with --gradient-checkpointing")
    if objective.fused not in ("auto", "off"):
        device = torch.accelerator.current_accelerator() or torch.device("cpu")
        try:
            choose_backend(device, torch.float32, objective.fused)
        except ValueError as error:
            raise CarefError(str(error)) from error


def _joined(features: list[dict[str, list[int]]], *, padding: int) -> dict[str, torch.Tensor]:
    """A batch for a decoder-only model: input and target in one row, padded on the right.

    Labels are -100 where the input or padding stands.
    """
    rows = [[*each["input_ids"], *each["labels"]] for each in features]
    width = max(map(len, rows))
    batch = {
        "input_ids": torch.full((len(rows), width), padding),
        "attention_mask": torch.zeros(len(rows), width, dtype=torch.long),
        "labels": torch.full((len(rows), width), -100),
    }
    for index, (each, row) in enumerate(zip(features, rows, strict=True)):
        batch["input_ids"][index, : len(row)] = torch.tensor(row)
        batch["attention_mask"][index, : len(row)] = 1
        batch["labels"][index, len(each["input_ids"]) : len(row)] = torch.tensor(each["labels"])
    return batch


def _of_tokens(objective: Objective, outputs: Any, labels: torch.Tensor, **options: Any) -> torch.Tensor:
    """The objective, of the tokens alone: embeddings that prompt tuning puts before them have logits too."""
    outputs["logits"] = outputs["logits"][:, -labels.shape[1] :]
    return objective(outputs, labels, **options)


def _last_checkpoint(work_dir: Path) -> str | None:
    """The latest checkpoint that is whole: its state is the last file that the Trainer writes."""
    whole = [
        (int(state.parent.name.rpartition("-")[2]), str(state.parent))
        for state in work_dir.glob("checkpoint-*/trainer_state.json")
    ]
    return max(whole)[1] if whole else None


def _printer() -> type:
    """The callback that prints every log entry; the command line shows its own progress."""
    from transformers.trainer_callback import PrinterCallback

    return PrinterCallback
