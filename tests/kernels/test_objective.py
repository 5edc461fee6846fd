"""Objectives with and without their kernel: the same value, gradient and logs."""

from __future__ import annotations

import copy
import shutil
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import Tensor

from caref.kernels import DeferredLogits
from caref.losses import OBJECTIVES, CarefLoss, Objective
from caref.losses.penalties import Penalties

from .cases import assert_same

SEPARATOR = [3]
WITH_KERNEL = [name for name in OBJECTIVES.names() if OBJECTIVES.get(name)().penalties() is not None]
WITHOUT_KERNEL = [name for name in OBJECTIVES.names() if name not in WITH_KERNEL]

# All settings that change a kernel's work, for the objectives that have them.
SETTINGS: list[dict[str, Any]] = [
    {},
    {"alpha": 1.5, "beta": 0.5, "lambda_sced": 0.7, "lambda_kl": 0.3, "normalize": "log_vocab"},
    {"lambda_sced": 0.0, "lambda_kl": 0.0},
    {"span": "answer", "separator_ids": SEPARATOR, "lambda_sced": 0.5},
    {"span": "explanation", "separator_ids": SEPARATOR, "lambda_kl": 0.5},
    {"shift": True},
    {"shift": True, "span": "explanation", "separator_ids": SEPARATOR, "reduction": "sum"},
    {"reduction": "none"},
    {"reduction": "none", "shift": True},
    {"ignore_index": 1},
    {"sced_warmup": 0.5, "lambda_sced": 2.0},
]


def make(name: str, fused: str, settings: dict[str, Any]) -> Objective:
    """An objective with those of the settings that it has."""
    entry = OBJECTIVES.get(name)
    known = entry().settings
    return entry(fused=fused, **{key: value for key, value in settings.items() if key in known})


class Batch:
    """Logits that are those of a head, with labels that have a separator in two of the rows."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.hidden = torch.randn(3, 7, 5, dtype=torch.float64)
        self.weight = torch.randn(13, 5, dtype=torch.float64)
        self.labels = torch.randint(4, 13, (3, 7))
        self.labels[0, 2] = self.labels[1, 4] = SEPARATOR[0]
        self.labels[0, 5:] = self.labels[2, 0] = -100
        self.labels[2, 3] = 1
        self.mask = torch.rand(3, 7) < 0.8

    def ignoring(self, index: int) -> Batch:
        self.labels[self.labels == -100] = index
        return self

    def logits(self) -> Tensor:
        return self.hidden @ self.weight.T


def call(loss: Objective, scores: Any, labels: Tensor, options: dict[str, Any]) -> Tensor:
    """The objective's value; where it needs a base, one that differs at every position."""
    if loss.needs_reference:
        logits = scores.compute() if isinstance(scores, DeferredLogits) else scores
        options = {**options, "reference_logits": logits.detach().flip(-1)}
    return loss(scores, labels, **options)


def outcome(loss: Objective, batch: Batch, *, promised: bool, **options: Any) -> list[Tensor]:
    """Value, gradients and logged means; twice with half of the progress between, as in training."""
    hidden, weight = batch.hidden.clone().requires_grad_(), batch.weight.clone().requires_grad_()
    values = []
    for progress in (0.2, 0.7):
        loss.set_progress(progress)
        scores = DeferredLogits.promise(hidden, weight) if promised else hidden @ weight.T
        values.append(call(loss, scores, batch.labels, options))
        values[-1].square().sum().backward()
    means = torch.tensor(list(loss.pop_components().values()), dtype=torch.float64)
    assert hidden.grad is not None
    assert weight.grad is not None
    return [*(value.detach() for value in values), hidden.grad, weight.grad, means]


def names(loss: Objective, batch: Batch) -> list[str]:
    call(loss, batch.logits().requires_grad_(), batch.labels, {})
    return list(loss.pop_components())


def test_who_has_a_kernel() -> None:
    assert {"caref", "ce", "sced", "kl"} <= set(WITH_KERNEL)
    assert {"focal", "entmax15", "asft"} <= set(WITHOUT_KERNEL)
    assert [name for name in OBJECTIVES.names() if OBJECTIVES.get(name)().has_kernel] == WITH_KERNEL


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: " ".join(s) or "defaults")
@pytest.mark.parametrize("name", WITH_KERNEL)
def test_the_kernel_computes_what_the_formula_says(name: str, settings: dict[str, Any]) -> None:
    batch = Batch().ignoring(settings.get("ignore_index", -100))
    shares = torch.tensor([3, 4])
    for given in [{}, {"mask": batch.mask}, {"num_items_in_batch": 40}, {"num_items_in_batch": shares}]:
        eager = make(name, "off", settings)
        expected = outcome(eager, batch, promised=False, **given)
        assert eager.ran == "eager"
        fused = make(name, "chunked", settings)
        assert_same(outcome(fused, batch, promised=False, **given), expected)
        assert fused.ran == "chunked"
        assert_same(outcome(fused, batch, promised=True, **given), expected)
        assert fused.ran == "chunked, from hidden states"
        assert_same(outcome(eager, batch, promised=True, **given), expected)
        assert eager.ran == "eager"
        assert names(fused, batch) == names(eager, batch)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: " ".join(s) or "defaults")
@pytest.mark.parametrize("name", WITH_KERNEL)
def test_the_two_descriptions_of_an_objective_agree(name: str, settings: dict[str, Any]) -> None:
    """`penalties` names the terms of `terms`, in their order and with their weights."""
    loss = make(name, "off", settings)
    for progress in (0.0, 0.3, 1.0):
        loss.set_progress(progress)
        penalties, terms = loss.penalties(), loss.terms(torch.randn(4, 6), torch.arange(4))
        assert isinstance(penalties, Penalties)
        weights = {"ce": 1.0, "sced": penalties.sced, "kl": penalties.kl}
        assert [term.name for term in terms] == list(penalties.names)
        assert {term.name: term.weight for term in terms} == {key: weights[key] for key in penalties.names}
        assert [term.name for term in terms if term.everywhere] == ["ce"]


@pytest.mark.parametrize("promised", [False, True])
@pytest.mark.parametrize("name", WITHOUT_KERNEL)
def test_without_a_kernel(name: str, promised: bool) -> None:
    batch, settings = Batch(), {"span": "answer", "separator_ids": SEPARATOR, "shift": True}
    expected = outcome(make(name, "off", settings), batch, promised=False, mask=batch.mask)
    loss = make(name, "auto", settings)
    assert_same(outcome(loss, batch, promised=promised, mask=batch.mask), expected)
    assert loss.ran == "eager"


@pytest.mark.parametrize("fused", ["chunked", "compiled", "triton"])
@pytest.mark.parametrize("name", WITHOUT_KERNEL)
def test_a_kernel_that_there_is_not(name: str, fused: str) -> None:
    entry = OBJECTIVES.get(name)
    with pytest.raises(
        ValueError, match=f"{entry.__name__} has no fused kernel; fused={fused!r} asks for one"
    ):
        entry(fused=fused)


def test_auto_takes_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Batch()
    for name in WITH_KERNEL:
        loss = make(name, "auto", {})
        assert loss.fused == "auto" == OBJECTIVES.get(name)().fused
        assert loss.ran is None
        loss(batch.logits(), batch.labels)
        assert loss.ran == "chunked"
    with pytest.raises(ValueError, match=r"fused must be one of 'auto', 'off', 'chunked', .* got 'on'"):
        CarefLoss(fused="on")
    monkeypatch.setattr("caref.kernels.backends._has_triton", lambda: False)
    with pytest.raises(ValueError, match="the Triton kernel cannot run here: Triton is not installed"):
        CarefLoss(fused="triton")(batch.logits(), batch.labels)


@pytest.mark.parametrize("fused", ["off", "chunked"])
@pytest.mark.parametrize("wrap", [lambda x: {"logits": x}, lambda x: type("Output", (), {"logits": x})()])
def test_a_model_may_promise_its_logits(fused: str, wrap: Any) -> None:
    batch, loss = Batch(), CarefLoss(fused=fused)
    promise = DeferredLogits.promise(batch.hidden, batch.weight)
    torch.testing.assert_close(loss(wrap(promise), batch.labels), loss(batch.logits(), batch.labels))


@pytest.mark.parametrize("promised", [False, True])
@pytest.mark.parametrize("fused", ["off", "chunked"])
def test_an_evaluation_leaves_no_trace(fused: str, promised: bool) -> None:
    batch, loss = Batch(), CarefLoss(fused=fused, sced_warmup=0.5)
    scores = DeferredLogits.promise(batch.hidden, batch.weight) if promised else batch.logits()
    with torch.no_grad():
        value = loss(scores, batch.labels)
    assert loss.pop_components() == {}
    torch.testing.assert_close(value, CarefLoss(fused="off")(batch.logits(), batch.labels))
    with pytest.raises(ValueError, match=r"a warm-up over 0\.5 of the training needs to know its progress"):
        loss(scores, batch.labels)


def test_logs_hold_no_graph() -> None:
    batch, loss = Batch(), CarefLoss(fused="chunked")
    for _ in range(3):
        loss(batch.logits().requires_grad_(), batch.labels)
    held = list(vars(loss)["_sums"].values())
    assert len(held) == 3
    assert all(value.dim() == 0 and not value.requires_grad for value in held)


def test_no_position_in_the_logs() -> None:
    batch = Batch()
    nothing = torch.full_like(batch.labels, -100)
    for fused in ("off", "chunked"):
        loss = CarefLoss(fused=fused)
        assert loss(batch.logits().requires_grad_(), nothing).item() == 0
        assert loss.pop_components() == {"ce": 0, "sced": 0, "kl": 0}


def test_copies_know_the_kernel() -> None:
    loss = CarefLoss(fused="chunked")
    assert loss.settings["fused"] == "chunked"
    assert copy.deepcopy(loss).fused == "chunked"


@pytest.mark.slow
@pytest.mark.skipif(
    not any(shutil.which(name) for name in ("c++", "g++", "clang++", "cl")),
    reason="torch.compile needs a C++ compiler",
)
@pytest.mark.parametrize("fused", ["auto", "chunked"])
def test_a_compiler_gets_the_formula(fused: str) -> None:
    """It makes one kernel of it by itself."""
    torch._dynamo.reset()
    batch, loss = Batch(), CarefLoss(fused=fused)
    logits, expected = (batch.logits().requires_grad_() for _ in range(2))
    torch.compile(lambda scores: loss(scores, batch.labels))(logits).backward()
    assert loss.ran == "eager"
    CarefLoss(fused="off")(expected, batch.labels).backward()
    assert_same([logits.grad], [expected.grad])
