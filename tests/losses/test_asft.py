from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from caref.losses import cross_entropy_loss
from caref.losses.asft import AsftObjective, kl_from_reference_per_position
from caref.losses.objective import Term

Batch = tuple[Tensor, Tensor]
SCORES = st.lists(st.floats(-20, 20), min_size=6, max_size=6)


def test_against_torch(batch: Batch) -> None:
    logits, labels = batch
    reference = logits.flip(-1)
    keep = labels != -100
    log_probs, base = logits.log_softmax(-1)[keep], reference.log_softmax(-1)[keep]
    p = log_probs.exp().gather(-1, labels[keep].unsqueeze(-1))
    kl = F.kl_div(log_probs, base, log_target=True, reduction="batchmean")
    expected = (-p * p.log()).mean() + 0.3 * kl
    value = AsftObjective(lambda_anchor=0.3)(logits, labels, reference_logits=reference)
    torch.testing.assert_close(value, expected)


def test_where_the_base_is_the_model_the_anchor_is_0_and_pulls_nowhere(batch: Batch) -> None:
    logits, labels = batch
    gradients = []
    for weight in (0.0, 5.0):
        scores = logits.clone().requires_grad_()
        loss = AsftObjective(lambda_anchor=weight)
        loss(scores, labels, reference_logits=logits).backward()
        assert loss.pop_components()["anchor"] == pytest.approx(0, abs=1e-15)
        gradients.append(scores.grad)
    torch.testing.assert_close(*gradients)


@given(SCORES, SCORES)
def test_the_anchor_is_at_least_0(scores: list[float], base: list[float]) -> None:
    model, reference = (torch.tensor(each, dtype=torch.float64).log_softmax(-1) for each in (scores, base))
    assert kl_from_reference_per_position(model, reference).item() >= -1e-12


def test_the_direction_of_the_divergence() -> None:
    model, base = torch.tensor([0.5, 0.5]).log(), torch.tensor([1.0, 0.0]).log()
    assert kl_from_reference_per_position(model, base).item() == pytest.approx(torch.tensor(2.0).log().item())


@given(SCORES)
def test_the_probability_is_constant_in_the_gradient(scores: list[float]) -> None:
    logits, label = torch.tensor(scores, dtype=torch.float64), torch.tensor(2)
    gradients = []
    for loss in (AsftObjective(lambda_anchor=0), cross_entropy_loss):
        given = logits.clone().requires_grad_()
        extra = {} if loss is cross_entropy_loss else {"reference_logits": logits}
        loss(given, label, **extra).backward()
        gradients.append(given.grad)
    torch.testing.assert_close(gradients[0], logits.softmax(-1)[2] * gradients[1])


def test_no_gradient_goes_into_the_base(batch: Batch) -> None:
    logits, labels = batch
    reference = logits.flip(-1).requires_grad_()
    AsftObjective()(logits.clone().requires_grad_(), labels, reference_logits=reference).backward()
    assert reference.grad is None


@pytest.mark.parametrize("wrap", [dict, lambda **kept: SimpleNamespace(**kept)])
def test_the_base_is_found_in_the_models_output(batch: Batch, wrap: type) -> None:
    logits, labels = batch
    output = wrap(logits=logits, reference_logits=logits.flip(-1))
    expected = AsftObjective()(logits, labels, reference_logits=logits.flip(-1))
    assert torch.equal(AsftObjective()(output, labels), expected)


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"logits": x}, lambda x: SimpleNamespace(logits=x)])
def test_without_the_base_it_says_so(batch: Batch, wrap: type) -> None:
    with pytest.raises(
        ValueError, match="AsftObjective needs the base model's logits: pass reference_logits"
    ):
        AsftObjective()(wrap(batch[0]), batch[1])


def test_the_base_must_have_the_same_shape(batch: Batch) -> None:
    logits, labels = batch
    with pytest.raises(
        ValueError, match=r"reference_logits must have shape \(3, 5, 11\), that of logits, got \(3, 5, 10\)"
    ):
        AsftObjective()(logits, labels, reference_logits=logits[..., :10])


def test_shift_moves_the_base_too(batch: Batch) -> None:
    logits, labels = batch
    value = AsftObjective(shift=True)(logits, labels, reference_logits=logits.flip(-1))
    moved = AsftObjective()(logits[:, :-1], labels[:, 1:], reference_logits=logits.flip(-1)[:, :-1])
    torch.testing.assert_close(value, moved)


def test_what_the_base_says_at_ignored_positions_does_not_count(batch: Batch) -> None:
    logits, labels = batch
    poisoned = logits.flip(-1).masked_fill((labels == -100).unsqueeze(-1), float("nan"))
    scores = logits.clone().requires_grad_()
    value = AsftObjective()(scores, labels, reference_logits=poisoned)
    value.backward()
    assert torch.equal(value, AsftObjective()(logits, labels, reference_logits=logits.flip(-1)))
    assert scores.grad is not None and scores.grad.isfinite().all()


def test_its_terms_are_finite_at_ignored_positions_too(batch: Batch) -> None:
    logits, labels = batch
    seen: list[bool] = []

    class Spy(AsftObjective):
        def terms(self, logits: Tensor, labels: Tensor, reference_logits: Tensor | None = None) -> list[Term]:
            terms = super().terms(logits, labels, reference_logits)
            seen.extend(bool(term.values.isfinite().all()) for term in terms)
            return terms

    Spy()(logits, labels, reference_logits=torch.where((labels == -100).unsqueeze(-1), torch.nan, logits))
    assert seen == [True, True]


def test_tokens_that_both_exclude_contribute_0() -> None:
    logits = torch.tensor([0.0, 1.0, -float("inf")], requires_grad=True)
    value = AsftObjective()(logits, torch.tensor(1), reference_logits=logits.detach().clone())
    value.backward()
    assert value.isfinite()
    assert logits.grad is not None and logits.grad.isfinite().all()


def test_half_precision_bases() -> None:
    logits, labels = torch.randn(2, 3, 7), torch.zeros(2, 3, dtype=torch.int64)
    value = AsftObjective()(logits, labels, reference_logits=logits.bfloat16())
    torch.testing.assert_close(
        value, AsftObjective()(logits, labels, reference_logits=logits.bfloat16().float())
    )


def test_range() -> None:
    with pytest.raises(ValueError, match="lambda_anchor must be a finite number of at least 0, got -1"):
        AsftObjective(lambda_anchor=-1)
