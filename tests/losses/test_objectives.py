"""The contract that every entry of the table of objectives keeps."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from caref.losses import OBJECTIVES, Objective

EVERY = pytest.mark.parametrize("name", OBJECTIVES.names())
Batch = tuple[Tensor, Tensor]


def make(name: str, **settings: object) -> Callable[..., Tensor]:
    """An objective; where it needs the base's logits, a base that differs at every position."""
    loss = OBJECTIVES.get(name)(**settings)
    if not loss.needs_reference:
        return loss

    def call(logits: Any, labels: Tensor, **options: Any) -> Tensor:
        scores = logits["logits"] if isinstance(logits, dict) else logits
        return loss(logits, labels, reference_logits=scores.detach().flip(-1), **options)

    call.pop_components = loss.pop_components  # type: ignore[attr-defined]
    return call


def test_the_table() -> None:
    assert OBJECTIVES.kind == "objective"
    assert OBJECTIVES.names()[:12] == [
        "caref", "ce", "sced", "kl", "entropy", "label_smoothing", "focal", "entmax15", "sparsemax",
        "additive", "asft", "eaft",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="unknown objective 'carref'; did you mean 'caref'"):
        OBJECTIVES.get("carref")


@EVERY
def test_settings_can_be_introspected(name: str) -> None:
    entry = OBJECTIVES.get(name)
    assert issubclass(entry, Objective)
    documented = re.findall(r"^    +(\w+): \S", inspect.cleandoc(entry.__doc__ or ""), flags=re.MULTILINE)
    parameters = inspect.signature(entry).parameters
    assert sorted(parameters) == sorted(documented)
    for parameter in parameters.values():
        assert parameter.default is not parameter.empty, parameter
        assert parameter.annotation is not parameter.empty, parameter
        assert not isinstance(parameter.annotation, str), parameter
    settings = entry().settings
    assert settings == {key: parameter.default for key, parameter in parameters.items()}
    assert entry(**json.loads(json.dumps(settings))).settings == settings


@EVERY
def test_value_and_gradient(name: str, batch: Batch) -> None:
    logits, labels = batch
    loss = make(name)
    value = loss(logits.requires_grad_(), labels)
    value.backward()
    assert value.shape == () and value.isfinite()
    assert logits.grad is not None and logits.grad.isfinite().all()
    assert (logits.grad[labels == -100] == 0).all()
    assert (logits.grad[labels != -100] != 0).any(-1).all()
    components = loss.pop_components()
    assert components and all(isinstance(mean, float) for mean in components.values())
    assert torch.equal(
        loss({"logits": logits}, labels, num_items_in_batch=2), loss(logits, labels, num_items_in_batch=2)
    )


@EVERY
def test_gradcheck(name: str) -> None:
    logits = torch.tensor(
        [[2.0, -1.0, 0.1, 1.3], [0.3, 0.2, -2.0, 1.0]], dtype=torch.float64, requires_grad=True
    )
    reference = torch.tensor([[0.3, 1.0, -1.0, 0.0], [2.0, 0.1, 0.4, -0.7]], dtype=torch.float64)
    entry = OBJECTIVES.get(name)
    extra = {"reference_logits": reference} if entry.needs_reference else {}

    def loss(scores: Tensor) -> Tensor:
        return entry()(scores, torch.tensor([3, 0]), **extra)

    # A factor that is held constant makes the gradient another one than the value's derivative.
    assert torch.autograd.gradcheck(loss, logits, raise_exception=False) != entry.has_detached_weight


@EVERY
def test_reductions(name: str, batch: Batch) -> None:
    logits, labels = batch
    each = make(name, reduction="none")(logits, labels)
    assert each.shape == labels.shape and (each[labels == -100] == 0).all()
    torch.testing.assert_close(make(name, reduction="sum")(logits, labels), each.sum())
    torch.testing.assert_close(make(name)(logits, labels), each.sum() / (labels != -100).sum())


@EVERY
def test_extreme_ignored_and_no_input(name: str) -> None:
    loss = make(name)
    logits = torch.tensor([[1e4, -1e4, 0.0], [0.0, 0.0, 0.0], [float("nan")] * 3], requires_grad=True)
    value = loss(logits, torch.tensor([0, 1, -100]))
    value.backward()
    assert value.isfinite()
    assert logits.grad is not None and logits.grad.isfinite().all()
    assert loss(logits, torch.tensor([-100] * 3)).item() == 0


EXTREME = [
    [1e4, -1e4, 0.0, 0.0],
    [-1e4, 1e4, 1e4, -1e4],
    [0.0, 0.0, 0.0, 0.0],
    [1e4, 1e4, 1e4, 1e4],
    [-1e4, -1e4, -1e4, -1e4],
    [1e4, 9999.0, 9998.0, -1e4],
]


@EVERY
@pytest.mark.parametrize("label", [0, 1, 3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_extreme_logits(name: str, label: int, dtype: torch.dtype) -> None:
    logits = torch.tensor(EXTREME, dtype=dtype, requires_grad=True)
    values = make(name, reduction="none")(logits, torch.full((len(EXTREME),), label))
    assert values.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    values.sum().backward()
    assert values.isfinite().all()
    assert logits.grad is not None and logits.grad.isfinite().all()


@EVERY
def test_every_span_and_shift(name: str, batch: Batch) -> None:
    for span in ["all", "answer", "explanation"]:
        loss = make(name, span=span, separator_ids=[3], shift=True)
        assert loss(*batch).isfinite()


@EVERY
def test_the_span_limits_what_is_added_and_not_what_stays_everywhere(name: str, batch: Batch) -> None:
    """The two spans' values add up to that of all, once more what stays on every position."""
    logits, labels = batch
    values = {s: make(name, span=s, separator_ids=[3])(logits, labels) for s in ["answer", "explanation"]}
    none_of_it = make(name, span="explanation", separator_ids=[12])(logits, labels)
    whole = make(name)(logits, labels)
    torch.testing.assert_close(values["answer"] + values["explanation"], whole + none_of_it)
    if name in {"caref", "sced", "kl", "entropy", "additive", "label_smoothing"}:
        assert torch.equal(none_of_it, OBJECTIVES.get("ce")()(logits, labels))
    if name in {"ce", "focal", "entmax15", "sparsemax", "eaft"}:
        assert torch.equal(none_of_it, whole)
    if name == "asft":
        assert torch.equal(none_of_it, make(name, lambda_anchor=0.0)(logits, labels))


@EVERY
def test_copies(name: str, batch: Batch) -> None:
    loss = OBJECTIVES.get(name)()
    extra = {"reference_logits": batch[0].flip(-1)} if loss.needs_reference else {}
    for twin in [copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))]:
        assert torch.equal(twin(*batch, **extra), loss(*batch, **extra))


def test_they_differ_by_their_terms(batch: Batch) -> None:
    value = {name: OBJECTIVES.get(name)()(*batch) for name in ["caref", "ce", "sced", "kl"]}
    torch.testing.assert_close(value["caref"], value["sced"] + value["kl"] - value["ce"])


def test_sced_alone_warms_up_too(batch: Batch) -> None:
    loss = OBJECTIVES.get("sced")(sced_warmup=0.5)
    loss.set_progress(0)
    assert torch.equal(loss(*batch), OBJECTIVES.get("ce")()(*batch))
