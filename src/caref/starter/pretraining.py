"""Training the starter model from scratch: first to copy, then everything that a `Teacher` has."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caref.starter.lessons import FIRST_KINDS, KINDS, Lesson, Teacher
from caref.starter.tokenizer import make_tokenizer
from caref.tasks.example import Fact
from caref.tasks.starter.world import BIGGER, load_world

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the starter model is made.

    Attributes:
        seed: Decides lessons and weights.
        steps: Steps of the optimizer.
        copying_steps: The first of them, that teach copying alone.
        batch: Lessons in a step.
        muon_learning_rate: Muon's, for the matrices of the layers: the highest, after the warm-up; it
            falls to nothing along a cosine, as the others do.
        learning_rate: AdamW's, for embeddings and norms.
        bias_learning_rate: That of the relative position biases. They start near zero and must grow to
            several units before a head can look at the word before: at the others' rate copying comes
            thousands of steps later.
        warmup_steps: Steps until then.
        d_model: Width.
        d_ff: Width inside a feed-forward layer.
        heads: Attention heads.
        encoder_layers: Layers of the encoder.
        decoder_layers: Layers of the decoder.
    """

    seed: int = 0
    steps: int = 5000
    copying_steps: int = 600
    batch: int = 64
    muon_learning_rate: float = 2e-3
    learning_rate: float = 1e-3
    bias_learning_rate: float = 5e-2
    warmup_steps: int = 200
    d_model: int = 192
    d_ff: int = 512
    heads: int = 6
    encoder_layers: int = 4
    decoder_layers: int = 2


_CHUNK = 32
"""Batches that are made at once and sorted by length."""


def pretrain(
    recipe: Recipe, directory: Path, *, environment: Mapping[str, Any] | None = None, log_every: int = 500
) -> None:
    """Train the model and write it, with its tokenizer, a log of what it learnt when, and ``recipe.json``.

    The same recipe on the same kind of processor, with the same packages and number of threads, gives the
    same bytes.

    Args:
        recipe: What to do.
        directory: Where the model goes, in the format of transformers; ``training.jsonl`` is the log.
        environment: Versions, commit and device, for ``recipe.json``.
        log_every: Steps between two lines of the log.
    """
    import torch

    from caref.models.loading import quiet_transformers

    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "training.jsonl"
    log.write_text("", encoding="utf-8")
    teacher = Teacher(load_world(), random.Random(recipe.seed))
    tokenizer = make_tokenizer(_sample_texts())
    tests = exercises()
    torch.manual_seed(recipe.seed)
    with quiet_transformers():
        model = _model(recipe, tokenizer)
    optimizers = _optimizers(model, recipe)
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(each, lambda step: _factor(recipe, step)) for each in optimizers
    ]
    started, losses = time.perf_counter(), []
    model.train()
    for step, lessons in enumerate(_batches(teacher, tokenizer, recipe), start=1):
        loss = model(**lessons).loss
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        for schedule in schedules:
            schedule.step()
        losses.append(loss.detach())
        if step % log_every == 0 or step == recipe.steps:
            row: dict[str, Any] = {
                "step": step,
                "seconds": round(time.perf_counter() - started),
                "loss": round(torch.stack(losses).mean().item(), 4),
                **measure(model, tokenizer, tests),
            }
            losses.clear()
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)
            _write(model, tokenizer, directory)
    record = {
        "recipe": asdict(recipe),
        "weights_sha256": hashlib.sha256((directory / "model.safetensors").read_bytes()).hexdigest(),
        "seconds": round(time.perf_counter() - started),
        "environment": dict(environment or {}),
    }
    (directory / "recipe.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _write(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, directory: Path) -> None:
    """Write the model in half precision, which loses nothing that matters and halves the file."""
    from caref.models.loading import quiet_transformers

    with quiet_transformers():
        copy.deepcopy(model).half().save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def measure(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, tests: dict[str, list[Lesson]]
) -> dict[str, float]:
    """The share of lessons of each kind answered word for word, and of facts recalled."""
    import torch

    model.eval()
    shares = {}
    with torch.inference_mode():
        for kind, lessons in tests.items():
            batch = _encode(tokenizer, lessons)
            right = (model(**batch).logits.argmax(-1) == batch["labels"]) | (batch["labels"] == -100)
            shares[kind] = round(right.all(-1).float().mean().item(), 3)
        shares["recall"] = round(_recall(model, tokenizer), 3)
    model.train()
    return shares


def _recall(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, count: int = 300) -> float:
    """The share of facts for which a question without choices gets a true answer."""
    world, rng = load_world(), random.Random("recall")
    facts = rng.sample([fact for fact in world.facts() if fact.relation != BIGGER], count)
    teacher = Teacher(world, rng)
    asked = [f"question: {teacher.ask(fact, asks_thing=False)}" for fact in facts]
    inputs = tokenizer(asked, padding=True, return_tensors="pt")
    told = tokenizer.batch_decode(
        model.generate(
            input_ids=inputs.input_ids,
            attention_mask=inputs.attention_mask,
            max_new_tokens=16,
            do_sample=False,
        ),
        skip_special_tokens=True,
    )
    true = set(world.facts())
    said = (Fact(fact.thing, fact.relation, text.strip()) for fact, text in zip(facts, told, strict=True))
    return sum(each in true for each in said) / count


def _sample_texts() -> Iterator[str]:
    teacher = Teacher(load_world(), random.Random("tokenizer"))
    kinds = [kind for kind in KINDS if kind != "copy"]
    for _ in range(30000):
        yield from teacher.lesson(kinds)
    yield from teacher.phrases
    yield from teacher.words


def exercises(count: int = 200) -> dict[str, list[Lesson]]:
    """Lessons with a single right answer, drawn apart from those of the training."""
    teacher = Teacher(load_world(), random.Random("tests"))
    kinds = ("copy", "pick", "choice", "pair", "follows", "compare")
    return {kind: [teacher.lesson([kind]) for _ in range(count)] for kind in kinds}


def _model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=recipe.d_model,
        d_kv=recipe.d_model // recipe.heads,
        d_ff=recipe.d_ff,
        num_layers=recipe.encoder_layers,
        num_decoder_layers=recipe.decoder_layers,
        num_heads=recipe.heads,
        dropout_rate=0.0,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
    )
    return T5ForConditionalGeneration(config)


def _optimizers(model: PreTrainedModel, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers, AdamW for everything else."""
    import torch

    matrices: list[torch.nn.Parameter] = []
    biases: list[torch.nn.Parameter] = []
    others: list[torch.nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if "relative_attention_bias" in name:
            biases.append(parameter)
        elif parameter.ndim == 2 and parameter is not model.get_input_embeddings().weight:
            matrices.append(parameter)
        else:
            others.append(parameter)
    muon = torch.optim.Muon(
        matrices, lr=recipe.muon_learning_rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"
    )
    groups = [
        {"params": others, "lr": recipe.learning_rate},
        {"params": biases, "lr": recipe.bias_learning_rate},
    ]
    return [muon, torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.01)]


def _factor(recipe: Recipe, step: int) -> float:
    if step < recipe.warmup_steps:
        return (step + 1) / recipe.warmup_steps
    done = (step - recipe.warmup_steps) / max(1, recipe.steps - recipe.warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def _batches(
    teacher: Teacher, tokenizer: PreTrainedTokenizerFast, recipe: Recipe
) -> Iterator[dict[str, torch.Tensor]]:
    """Batches of lessons of similar length, in random order."""
    made = 0
    while made < recipe.steps:
        kinds = FIRST_KINDS if made < recipe.copying_steps else tuple(KINDS)
        lessons = [teacher.lesson(kinds) for _ in range(_CHUNK * recipe.batch)]
        lessons.sort(key=lambda lesson: (len(lesson.input.split()), len(lesson.target)))
        starts = list(range(0, len(lessons), recipe.batch))
        teacher.rng.shuffle(starts)
        for start in starts[: recipe.steps - made]:
            yield _encode(tokenizer, lessons[start : start + recipe.batch])
            made += 1


def _encode(tokenizer: PreTrainedTokenizerFast, lessons: Sequence[Lesson]) -> dict[str, torch.Tensor]:
    inputs = tokenizer([lesson.input for lesson in lessons], padding=True, return_tensors="pt")
    targets = tokenizer([lesson.target for lesson in lessons], padding=True, return_tensors="pt")
    return {
        "input_ids": inputs.input_ids,
        "attention_mask": inputs.attention_mask,
        "labels": targets.input_ids.masked_fill(targets.attention_mask == 0, -100),
    }
