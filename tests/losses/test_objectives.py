"""The contract that every entry of the table of objectives keeps."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import re

import pytest
import torch
from torch import Tensor

from caref.losses import OBJECTIVES, Objective

EVERY = pytest.mark.parametrize("name", OBJECTIVES.names())
Batch = tuple[Tensor, Tensor]


def test_the_table() -> None:
    assert OBJECTIVES.kind == "objective"
    assert {"caref", "ce", "sced", "kl"} <= set(OBJECTIVES.names())
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
    loss = OBJECTIVES.get(name)()
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
    assert torch.autograd.gradcheck(
        lambda scores: OBJECTIVES.get(name)()(scores, torch.tensor([3, 0])), logits
    )


@EVERY
def test_reductions(name: str, batch: Batch) -> None:
    logits, labels = batch
    entry = OBJECTIVES.get(name)
    each = entry(reduction="none")(logits, labels)
    assert each.shape == labels.shape and (each[labels == -100] == 0).all()
    torch.testing.assert_close(entry(reduction="sum")(logits, labels), each.sum())
    torch.testing.assert_close(entry()(logits, labels), each.sum() / (labels != -100).sum())


@EVERY
def test_extreme_ignored_and_no_input(name: str) -> None:
    loss = OBJECTIVES.get(name)()
    logits = torch.tensor([[1e4, -1e4, 0.0], [0.0, 0.0, 0.0], [float("nan")] * 3], requires_grad=True)
    value = loss(logits, torch.tensor([0, 1, -100]))
    value.backward()
    assert value.isfinite()
    assert logits.grad is not None and logits.grad.isfinite().all()
    assert loss(logits, torch.tensor([-100] * 3)).item() == 0


@EVERY
def test_every_span_and_shift(name: str, batch: Batch) -> None:
    for span in ["all", "answer", "explanation"]:
        loss = OBJECTIVES.get(name)(span=span, separator_ids=[3], shift=True)
        assert loss(*batch).isfinite()


@EVERY
def test_copies(name: str, batch: Batch) -> None:
    loss = OBJECTIVES.get(name)()
    for twin in [copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))]:
        assert torch.equal(twin(*batch), loss(*batch))


def test_they_differ_by_their_terms(batch: Batch) -> None:
    value = {name: OBJECTIVES.get(name)()(*batch) for name in ["caref", "ce", "sced", "kl"]}
    torch.testing.assert_close(value["caref"], value["sced"] + value["kl"] - value["ce"])


def test_sced_alone_warms_up_too(batch: Batch) -> None:
    loss = OBJECTIVES.get("sced")(sced_warmup=0.5)
    loss.set_progress(0)
    assert torch.equal(loss(*batch), OBJECTIVES.get("ce")()(*batch))
