"""The objective inside a real `transformers.Trainer`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from caref.losses import CarefLoss, caref_loss

transformers = pytest.importorskip("transformers")

LENGTHS = [9, 2, 5, 1]


def tiny_t5() -> torch.nn.Module:
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=40, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, dropout_rate=0.0,
        decoder_start_token_id=0,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config).double()


def tiny_llama() -> torch.nn.Module:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=40, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=16, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).double()


def tiny_gpt2() -> torch.nn.Module:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=40, n_embd=16, n_layer=1, n_head=2, n_positions=16,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).double()


def examples(causal: bool) -> list[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    rows = []
    for length in LENGTHS:
        tokens = torch.randint(2, 40, (9,), generator=generator)
        labels = tokens.clone()
        labels[length:] = -100
        row = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": labels}
        if not causal:  # the Trainer keeps the labels from the model: it needs its own decoder inputs
            row["decoder_input_ids"] = (
                labels.masked_fill(labels == -100, 0).roll(1).index_fill(0, torch.tensor(0), 0)
            )
        rows.append(row)
    return rows


def weights_after_one_step(
    folder: Path, model: torch.nn.Module, loss: CarefLoss, data: list[dict[str, Tensor]], batch: int
) -> dict[str, Tensor]:
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=4 // batch,
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
    )
    trainer = transformers.Trainer(
        model=model, args=arguments, train_dataset=data, eval_dataset=data, compute_loss_func=loss
    )
    trainer.train()
    # Before the evaluation below: it must not count.
    assert loss.pop_components()["kl"] > 0
    assert trainer.evaluate()["eval_loss"] > 0
    assert loss.pop_components() == {}
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


@pytest.mark.parametrize("make", [tiny_t5, tiny_llama, tiny_gpt2])
def test_accumulation_equals_one_big_batch(tmp_path: Path, make: Callable[[], torch.nn.Module]) -> None:
    causal = make is not tiny_t5
    data = examples(causal)
    if make is tiny_gpt2:
        # For a model that declares no causal loss the Trainer counts each row's first label too,
        # which no logit predicts. Behind a prompt it is ignored, and the count is right.
        for row in data:
            row["labels"][0] = -100
    loss = CarefLoss(shift=causal, span="answer", separator_ids=[int(data[0]["labels"][3])])
    whole = weights_after_one_step(tmp_path, make(), loss, data, batch=4)
    parts = weights_after_one_step(tmp_path, make(), loss, data, batch=1)

    # And both equal a step by hand on the whole batch.
    model = make()
    inputs = {key: torch.stack([row[key] for row in data]) for key in data[0]}
    labels = inputs.pop("labels")
    loss(model(**inputs), labels).backward()
    for name, start in model.named_parameters():
        assert start.grad is not None
        change = -start.grad
        for weights in (whole, parts):
            error = (weights[name] - start.detach() - change).norm()
            assert error <= 1e-6 * change.norm() + 1e-12, name


@pytest.mark.parametrize("declared", [False, True])
def test_gpt2s_first_labels_are_counted_unless_it_declares_its_loss(tmp_path: Path, declared: bool) -> None:
    data = examples(causal=True)
    model = tiny_gpt2()
    if declared:
        model.loss_type = "ForCausalLM"
    weights = weights_after_one_step(tmp_path, model, CarefLoss(shift=True), data, batch=4)

    model = tiny_gpt2()
    inputs = {key: torch.stack([row[key] for row in data]) for key in data[0]}
    labels = inputs.pop("labels")
    CarefLoss(shift=True)(model(**inputs), labels).backward()
    predicted, counted = sum(LENGTHS) - len(LENGTHS), sum(LENGTHS)
    share = 1.0 if declared else predicted / counted
    for name, start in model.named_parameters():
        assert start.grad is not None
        error = (start.detach() - weights[name] - share * start.grad).norm()
        assert error <= 1e-6 * start.grad.norm() + 1e-12, name


@pytest.mark.parametrize("generates", [False, True])
def test_seq2seq_trainer_evaluates_with_the_loss_unless_it_generates(tmp_path: Path, generates: bool) -> None:
    model, data = tiny_t5(), examples(causal=False)
    arguments = transformers.Seq2SeqTrainingArguments(
        output_dir=str(tmp_path),
        per_device_eval_batch_size=4,
        predict_with_generate=generates,
        generation_max_length=12,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = transformers.Seq2SeqTrainer(
        model=model,
        args=arguments,
        eval_dataset=data,
        compute_loss_func=CarefLoss(),
        compute_metrics=lambda _: {},  # without it nothing is generated in an evaluation
    )
    inputs = {key: torch.stack([row[key] for row in data]) for key in data[0]}
    labels = inputs.pop("labels")
    settings = {"lambda_sced": 0.0, "lambda_kl": 0.0} if generates else {}
    expected = caref_loss(model(**inputs).logits, labels, **settings).item()
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected, rel=1e-6)


def test_evaluation_is_the_mean_loss(tmp_path: Path) -> None:
    model, data = tiny_t5(), examples(causal=False)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        per_device_eval_batch_size=4,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = transformers.Trainer(
        model=model, args=arguments, eval_dataset=data, compute_loss_func=CarefLoss()
    )
    inputs = {key: torch.stack([row[key] for row in data]) for key in data[0]}
    labels = inputs.pop("labels")
    expected = caref_loss(model(**inputs).logits, labels).item()
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected, rel=1e-6)
