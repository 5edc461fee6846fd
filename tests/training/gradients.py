"""One step of each training loop, in one process or several: what it takes from the weights is the gradient.

As a script it is started by a launcher, once in each process, and saves what each loop took.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from caref.losses import CarefLoss

EXAMPLES = Path(__file__).parents[2] / "examples" / "drop-in"
MICRO_BATCHES = 4  # as the examples have it
LENGTHS = [9, 2, 5, 1, 7, 3, 8, 2]  # of the targets; every second one is another process's

Gradients = dict[str, Tensor]


def load(folder: str | Path) -> torch.nn.Module:
    """A tiny model in float64, without dropout, in training mode."""
    from transformers import AutoConfig

    from caref.models.loading import model_class

    config = AutoConfig.from_pretrained(folder)
    for key, value in config.to_dict().items():
        if "drop" in key and isinstance(value, float):
            setattr(config, key, 0.0)
    return model_class(config).from_pretrained(folder, config=config, dtype=torch.float64).train()


def load_tokenizer(folder: str | Path) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="right")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return tokenizer


def rows(model: torch.nn.Module) -> list[dict[str, list[int]]]:
    """Eight examples with inputs and targets of unequal lengths; a causal model's prompts do not count."""
    generator = torch.Generator().manual_seed(1)
    found = []
    for index, length in enumerate(LENGTHS):
        tokens = torch.randint(5, 60, (2 + index % 3 + length,), generator=generator).tolist()
        prompt, answer = tokens[:-length], tokens[-length:]
        if model.config.is_encoder_decoder:
            found.append({"input_ids": prompt, "labels": answer})
        else:
            found.append({"input_ids": tokens, "labels": [-100] * len(prompt) + answer})
    return found


def make_collator(model: torch.nn.Module, tokenizer: Any) -> Callable[..., Any]:
    from transformers import DataCollatorForSeq2Seq

    return DataCollatorForSeq2Seq(tokenizer, model=model if model.config.is_encoder_decoder else None)


def make_loss(model: torch.nn.Module) -> CarefLoss:
    return CarefLoss(shift=not model.config.is_encoder_decoder)


def by_hand(folder: str | Path) -> Gradients:
    """The gradient of the mean loss of all examples in one batch."""
    model = load(folder)
    batch = make_collator(model, load_tokenizer(folder))(rows(model))
    labels = batch.pop("labels")
    value = make_loss(model)(model(**batch), labels)
    assert value.dtype == torch.float64
    value.backward()
    return {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}


# --- the loops: each makes one step of plain gradient descent at a rate of 1 -------------------------


def pytorch(model: torch.nn.Module, tokenizer: Any, out: str) -> None:
    from torch.nn.parallel import DistributedDataParallel

    processes, rank, data = world_size(), int(os.environ.get("RANK", "0")), rows(model)
    loader = torch.utils.data.DataLoader(
        data[rank::processes],
        batch_size=len(data) // MICRO_BATCHES // processes,
        collate_fn=make_collator(model, tokenizer),
    )
    wrapped = DistributedDataParallel(model) if processes > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    example("pytorch_loop")["train"](wrapped, optimizer, loader, 1, make_loss(model))


def accelerate(model: torch.nn.Module, tokenizer: Any, out: str) -> None:
    data, script = rows(model), example("accelerate_loop")
    loader = torch.utils.data.DataLoader(
        data,
        batch_size=len(data) // MICRO_BATCHES // world_size(),
        collate_fn=make_collator(model, tokenizer),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    script["train"](script["make_accelerator"](), model, optimizer, loader, 1, make_loss(model))


def trainer(model: torch.nn.Module, tokenizer: Any, out: str) -> None:
    from transformers import Trainer, TrainingArguments

    _train(Trainer, TrainingArguments, model, out, data_collator=make_collator(model, tokenizer))


def seq2seq(model: torch.nn.Module, tokenizer: Any, out: str) -> None:
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

    _train(
        Seq2SeqTrainer, Seq2SeqTrainingArguments, model, out, data_collator=make_collator(model, tokenizer)
    )


def sft(model: torch.nn.Module, tokenizer: Any, out: str) -> None:
    from trl import SFTConfig, SFTTrainer

    _train(SFTTrainer, SFTConfig, model, out, processing_class=tokenizer)


def sft_overridden(model: torch.nn.Module, tokenizer: Any, out: str) -> None:
    """As `sft`, without the second forward pass for TRL's own figures."""
    from transformers import Trainer
    from trl import SFTConfig, SFTTrainer

    class Once(SFTTrainer):
        compute_loss = Trainer.compute_loss

    _train(Once, SFTConfig, model, out, processing_class=tokenizer)


def _train(kind: Any, settings: Any, model: torch.nn.Module, out: str, **options: Any) -> None:
    from datasets import Dataset

    data = rows(model)
    kind(
        model=model,
        args=settings(
            out,
            per_device_train_batch_size=len(data) // MICRO_BATCHES // world_size(),
            gradient_accumulation_steps=MICRO_BATCHES,
            max_steps=1,
            optim="sgd",
            learning_rate=1.0,
            lr_scheduler_type="constant",
            max_grad_norm=0.0,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
        ),
        train_dataset=Dataset.from_list(data),
        compute_loss_func=make_loss(model),
        **options,
    ).train()


ENCODER_DECODER_LOOPS = {f.__name__: f for f in (pytorch, accelerate, trainer, seq2seq)}
CAUSAL_LOOPS = {f.__name__: f for f in (pytorch, accelerate, trainer, sft, sft_overridden)}


def gradients_of(loop: Callable[..., None], folder: str | Path, out: str | Path) -> Gradients:
    """What one step of a loop takes from the weights."""
    from accelerate.state import AcceleratorState, GradientState, PartialState

    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    model = load(folder)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    loop(model, load_tokenizer(folder), str(out))
    return {name: before[name] - weight.detach() for name, weight in model.named_parameters()}


def world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def example(name: str) -> dict[str, Any]:
    """What one of the example scripts defines."""
    with _importable(EXAMPLES):
        return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def main(encoder_decoder: str, causal: str, out: str) -> None:
    from safetensors.torch import save_file

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    for family, folder, loops in (
        ("encoder_decoder", encoder_decoder, ENCODER_DECODER_LOOPS),
        ("causal", causal, CAUSAL_LOOPS),
    ):
        for name, loop in loops.items():
            found = gradients_of(loop, folder, Path(out) / "trainer")
            rank = torch.distributed.get_rank()
            save_file(
                {key: value.contiguous() for key, value in found.items()},
                Path(out) / f"{family}-{name}-{rank}.safetensors",
            )
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
