from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from caref.losses import CarefLoss, Objective, caref_loss
from caref.losses.cross_entropy import CrossEntropyObjective
from caref.models.loading import ModelSource, load_model, load_tokenizer

Run = Callable[..., Any]


class Spy(CarefLoss):
    """Notes what the Trainer calls it with."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.calls: list[tuple[torch.Tensor, torch.Tensor, int]] = []
        self.shares: list[float] = []

    def set_progress(self, fraction: float) -> None:
        self.shares.append(fraction)
        super().set_progress(fraction)

    def __call__(self, logits: Any, labels: Any, **options: Any) -> torch.Tensor:
        count = int(options["num_items_in_batch"])
        self.calls.append((logits.logits.detach().clone(), labels.clone(), count))
        return super().__call__(logits, labels, **options)


def test_the_collator_gives_the_decoder_its_inputs(tiny_model: Path, run: Run) -> None:
    """The logits of the first step are those of a plain forward pass with the labels shifted right."""
    spy = Spy()
    trained = run(tiny_model, objective=spy, batch_size=8, max_steps=1, dropout=False)
    ((logits, labels, count),) = spy.calls
    assert count == sum(len(each.labels) for each in trained.data)

    source = ModelSource(str(tiny_model))
    model, tokenizer = load_model(source).eval(), load_tokenizer(source)
    by_labels = {tuple(each.labels): each.question.input_ids for each in trained.data}
    pad, start = tokenizer.pad_token_id, model.config.decoder_start_token_id
    for row, row_labels in zip(logits, labels, strict=True):
        kept = row_labels != -100
        target = row_labels[kept].tolist()
        with torch.no_grad():
            expected = model(
                input_ids=torch.tensor([by_labels[tuple(target)]]),
                decoder_input_ids=torch.tensor([[start, *target[:-1]]]),
            ).logits[0]
        torch.testing.assert_close(row[kept], expected, rtol=1e-4, atol=1e-4)
        assert pad not in target
    assert trained.log[0]["loss"] == pytest.approx(caref_loss(logits, labels).item(), rel=1e-5)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_log_holds_the_terms_and_they_add_up(tiny_model: Path, run: Run, accumulate: int) -> None:
    weights = {"ce": 1.0, "sced": 0.3, "kl": 0.2}
    objective = CarefLoss(lambda_sced=0.3, lambda_kl=0.2)
    trained = run(tiny_model, objective=objective, batch_size=2, gradient_accumulation=accumulate, epochs=3)
    steps = 8 // (2 * accumulate)
    assert [entry["step"] for entry in trained.log] == [steps, 2 * steps, 3 * steps]
    for entry in trained.log:
        assert {"loss", "learning_rate", "grad_norm", "epoch", *weights} <= set(entry)
        # The loss is a mean over steps, the terms over positions: the same where steps hold as many.
        total = sum(weight * entry[term] for term, weight in weights.items())
        assert entry["loss"] == pytest.approx(total, rel=0.05)


def test_the_terms_add_up_exactly_where_there_is_one_step(tiny_t5: Path, run: Run) -> None:
    entry = run(tiny_t5, batch_size=4, gradient_accumulation=2, max_steps=1).log[0]
    assert entry["loss"] == pytest.approx(entry["ce"] + 0.1 * entry["sced"] + 0.1 * entry["kl"], rel=1e-5)


def test_another_objective_gives_other_weights_and_its_own_terms(tiny_t5: Path, run: Run) -> None:
    caref = run(tiny_t5)
    plain = run(tiny_t5, objective=CrossEntropyObjective())
    assert "sced" not in plain.log[0]
    assert plain.log[0]["ce"] > 0
    assert any(not torch.equal(caref.weights[name], plain.weights[name]) for name in caref.weights)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dec", "lora", "base"])
def test_training_learns(tiny_model: Path, run: Run, method: str) -> None:
    trained = run(tiny_model, method=method, epochs=10, learning_rate=2e-2)
    first, last = trained.log[0], trained.log[-1]
    assert last["ce"] < first["ce"] - 0.1


@pytest.mark.parametrize("method", ["aq", "lora", "base"])
def test_the_same_seed_gives_the_same_weights(tiny_model: Path, run: Run, method: str) -> None:
    one, again, other = (run(tiny_model, method=method, seed=seed) for seed in (1, 1, 2))
    assert one.weights.keys() == again.weights.keys()
    assert all(torch.equal(one.weights[name], again.weights[name]) for name in one.weights)
    assert not all(torch.equal(one.weights[name], other.weights[name]) for name in one.weights)
    terms = ("loss", "ce", "sced", "kl")
    assert [[e[t] for t in terms] for e in one.log] == [[e[t] for t in terms] for e in again.log]


def test_steps_are_reported(tiny_t5: Path, run: Run) -> None:
    seen: list[tuple[int, int]] = []
    trained = run(tiny_t5, count=6, epochs=1.5, on_step=lambda done, total: seen.append((done, total)))
    # Two steps an epoch, the second one of two examples.
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert trained.result.steps == 3


def test_max_steps_goes_before_epochs(tiny_t5: Path, run: Run) -> None:
    assert run(tiny_t5, epochs=1, max_steps=5).result.steps == 5
    assert run(tiny_t5, epochs=50, max_steps=1).result.steps == 1


def test_0_epochs_train_nothing(tiny_model: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    untouched = run(tiny_model, max_steps=1, learning_rate=1e-12, weight_decay=0.0).weights
    assert run(tiny_model, epochs=0, max_steps=2).result.steps == 2
    monkeypatch.setattr("caref.training.train.Trainer", lambda **_: pytest.fail("a Trainer was made"))
    trained = run(tiny_model, epochs=0)
    assert (trained.result.steps, trained.result.history) == (0, [])
    assert trained.weights.keys() == untouched.keys()
    for name, weight in trained.weights.items():
        torch.testing.assert_close(weight, untouched[name], rtol=0, atol=1e-9)


def test_progress_reaches_the_objective(tiny_t5: Path, run: Run) -> None:
    spy = Spy(sced_warmup=0.5)
    run(tiny_t5, objective=spy, epochs=4)
    assert spy.shares == [step / 8 for step in range(8)]


def test_the_warm_up_of_sced_is_at_work(tiny_t5: Path, run: Run) -> None:
    # Far from converged the loss is CE + lambda * SCED + ...: with the terms logged, lambda follows.
    objective = CarefLoss(sced_warmup=0.5, lambda_sced=0.4)
    trained = run(tiny_t5, objective=objective, batch_size=8, epochs=8, learning_rate=1e-6)
    lambdas = [(entry["loss"] - entry["ce"] - 0.1 * entry["kl"]) / entry["sced"] for entry in trained.log]
    assert lambdas == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.4, 0.4, 0.4], abs=2e-3)


def test_accumulation_is_one_bigger_batch(tiny_t5: Path, run: Run) -> None:
    whole = run(tiny_t5, batch_size=4, epochs=2, dropout=False)
    parts = run(tiny_t5, batch_size=2, gradient_accumulation=2, epochs=2, dropout=False)
    assert whole.result.steps == parts.result.steps == 4
    start = dict(run(tiny_t5, max_steps=1, learning_rate=1e-12).weights)
    for name, weight in whole.weights.items():
        moved = (weight - start[name]).norm()
        assert moved > 0.01
        assert (weight - parts.weights[name]).norm() < 1e-3 * moved


@pytest.mark.parametrize("method", ["aq", "lora", "dec", "base"])
def test_checkpointing_of_activations_changes_nothing(
    tiny_model: Path, run: Run, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    real = torch.nn.Linear.forward

    def forward(self: torch.nn.Linear, value: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return real(self, value)

    monkeypatch.setattr(torch.nn.Linear, "forward", forward)
    outcomes = []
    for on in (False, True):
        calls = 0
        outcomes.append((run(tiny_model, method=method, max_steps=2, gradient_checkpointing=on), calls))
    (whole, once), (saved, twice) = outcomes
    assert twice > 1.5 * once, "nothing was recomputed"
    start = run(tiny_model, method=method, max_steps=1, learning_rate=1e-12, weight_decay=0.0)
    for name, weight in saved.weights.items():
        if "pooler" not in name:
            assert (weight - start.weights[name]).norm() > 1e-4, f"no gradient reached {name}"
        # A bias of the keys moves all scores of a query alike: its gradient is rounding and nothing else,
        # which Adam turns into whole steps, other ones on every machine.
        if not (".key." in name and name.endswith(".bias")):
            torch.testing.assert_close(weight, whole.weights[name], rtol=1e-4, atol=1e-5, msg=name)


def test_tensorboard_is_written_the_terms_among_it(
    tiny_t5: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.chdir(tmp_path)
    run(tiny_t5, report_to=("tensorboard",), work_dir=tmp_path / "work")
    files = [Path(root) for root, _, names in os.walk(tmp_path) if any("tfevents" in name for name in names)]
    assert len(files) == 1
    assert files[0].is_relative_to(tmp_path / "work")
    events = EventAccumulator(str(files[0]))
    events.Reload()
    tags = set(events.Tags()["scalars"])
    assert {f"train/{name}" for name in ("loss", "ce", "sced", "kl", "learning_rate")} <= tags


def test_nothing_is_printed_or_written_unasked(
    tiny_t5: Path, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tiny_t5, work_dir=tmp_path / "work")
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "work").exists() or not list((tmp_path / "work").iterdir())


def test_an_objective_is_all_that_is_needed() -> None:
    assert isinstance(Spy(), Objective)
