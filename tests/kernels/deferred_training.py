"""Models, batches and a training for the tests of promised logits.

As a script it is started by a launcher, once in each process: it trains each case and saves the weights.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from caref.kernels import defer_head
from caref.losses import CarefLoss

CASES = {
    "a head of its own": ("tiny_llama", None),
    "tied, with a bias": ("tiny_bert2bert", None),
    "an adapter": ("tiny_qwen2", "lora"),
    "an adapter with a head": ("tiny_llama", "lora and head"),
}
"""What two processes train: a fixture and an adapter."""


def load(folder: str | Path) -> Any:
    """A tiny model in float64, without dropout, in training mode."""
    from transformers import AutoConfig

    from caref.models.loading import model_class

    config = AutoConfig.from_pretrained(folder)
    for part in (config, *(getattr(config, each, config) for each in ("encoder", "decoder"))):
        for key, value in part.to_dict().items():
            if "drop" in key and isinstance(value, float):
                setattr(part, key, 0.0)
    return model_class(config).from_pretrained(folder, config=config, dtype=torch.float64).train()


def head_name(model: Any) -> str:
    head = model.get_output_embeddings()
    return next(name for name, module in model.named_modules() if module is head)


def with_adapter(model: Any, kind: str, name: str = "default") -> Any:
    """A model of PEFT around `model`, the same each time."""
    from peft import LoraConfig, PrefixTuningConfig, PromptTuningConfig, get_peft_model

    task = {"task_type": "SEQ_2_SEQ_LM" if model.config.is_encoder_decoder else "CAUSAL_LM"}
    lora = {"target_modules": "all-linear", "init_lora_weights": False, "r": 2}
    config: Any = {
        "lora": lambda: LoraConfig(**lora, **task),
        "lora and head": lambda: LoraConfig(**lora, **task, modules_to_save=[head_name(model)]),
        "lora on the head": lambda: LoraConfig(**{**lora, "target_modules": [head_name(model)]}, **task),
        "prompt": lambda: PromptTuningConfig(num_virtual_tokens=3, **task),
        "prefix": lambda: PrefixTuningConfig(num_virtual_tokens=3, **task),
    }[kind]()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return get_peft_model(model, config, adapter_name=name).train()


def rows(model: Any) -> list[dict[str, list[int]]]:
    """Eight examples of unequal lengths; a causal model's prompts do not count."""
    generator = torch.Generator().manual_seed(1)
    found = []
    for index, length in enumerate([5, 2, 4, 1, 6, 3, 5, 2]):
        tokens = torch.randint(5, 60, (2 + index % 3 + length,), generator=generator).tolist()
        prompt, answer = tokens[:-length], tokens[-length:]
        if model.config.is_encoder_decoder:
            found.append({"input_ids": prompt, "labels": answer})
        else:
            found.append({"input_ids": tokens, "labels": [-100] * len(prompt) + answer})
    return found


def collate(is_encoder_decoder: bool, examples: list[dict[str, list[int]]]) -> dict[str, Tensor]:
    """A batch, padded on the right; a decoder reads its labels one behind."""

    def padded(lists: list[list[int]], filler: int) -> Tensor:
        width = max(map(len, lists))
        return torch.tensor([[*each, *([filler] * (width - len(each)))] for each in lists])

    inputs = [each["input_ids"] for each in examples]
    batch = {
        "input_ids": padded(inputs, 0),
        "attention_mask": padded([[1] * len(each) for each in inputs], 0),
        "labels": padded([each["labels"] for each in examples], -100),
    }
    if is_encoder_decoder:
        batch["decoder_input_ids"] = padded([[2, *each["labels"][:-1]] for each in examples], 0)
    return batch


def make_batch(model: Any) -> tuple[dict[str, Tensor], Tensor]:
    """The first examples: what a model is called with, and the labels."""
    batch = collate(model.config.is_encoder_decoder, rows(model)[:4])
    return batch, batch.pop("labels")


def make_loss(model: Any, **settings: Any) -> CarefLoss:
    return CarefLoss(shift=not model.config.is_encoder_decoder, **settings)


def train(
    model: Any, out: str | Path, *, deferred: bool, processes: int = 1, **settings: Any
) -> tuple[list[dict[str, float]], str | None]:
    """Four steps by transformers' Trainer: its log, and what computed the loss in the last."""
    from functools import partial

    from transformers import Trainer, TrainingArguments
    from transformers.trainer_callback import PrinterCallback

    from caref.training.callbacks import ObjectiveCallback

    loss = make_loss(model, sced_warmup=0.5)
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            str(out),
            per_device_train_batch_size=2 // processes,
            gradient_accumulation_steps=2,
            max_steps=4,
            logging_steps=1,
            optim="sgd",
            max_grad_norm=0.0,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            **{"learning_rate": 0.05, **settings},
        ),
        train_dataset=rows(model),
        eval_dataset=rows(model)[:3],
        data_collator=partial(collate, model.config.is_encoder_decoder),
        compute_loss_func=loss,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.callback_handler.callbacks.insert(0, ObjectiveCallback(loss))
    with defer_head(model) if deferred else nullcontext():
        trainer.train()
    return trainer.state.log_history, loss.ran


def trained_weights(model: Any) -> dict[str, Tensor]:
    return {name: each.detach().clone() for name, each in model.named_parameters() if each.requires_grad}


def main(out: str, *folders: str) -> None:
    from accelerate.state import AcceleratorState, GradientState, PartialState
    from safetensors.torch import save_file

    torch.set_num_threads(1)
    for (case, (_, adapter)), folder in zip(CASES.items(), folders, strict=True):
        for state in (AcceleratorState, GradientState, PartialState):
            state._reset_state()
        model = load(folder)
        model = model if adapter is None else with_adapter(model, adapter)
        _, ran = train(model, out, deferred=True, processes=2)
        assert ran == "chunked, from hidden states"
        weights = {name: each.contiguous() for name, each in trained_weights(model).items()}
        save_file(weights, Path(out) / f"{case} {os.environ['RANK']}.safetensors")


if __name__ == "__main__":
    main(*sys.argv[1:])
