from __future__ import annotations

import math
from types import ModuleType

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from caref.losses import sced_loss
from caref.losses.sced import sced_per_position

ZERO = torch.tensor(0)
LOGITS = st.lists(st.floats(-30, 30), min_size=1, max_size=12)
ALPHAS = [1.0, 1.5, 2.0, 2.5]
BETAS = [0.0, 0.5, 1.0, 2.0]
GRID = pytest.mark.parametrize(("alpha", "beta"), [(alpha, beta) for alpha in ALPHAS for beta in BETAS])


def row(scores: list[float]) -> Tensor:
    return torch.tensor(scores, dtype=torch.float64)


def test_by_hand() -> None:
    logits = row([3.0, 1.0]).log()  # P = 3/4, 1/4
    up, down = 0.75 * math.log(1.5), 0.25 * math.log(0.5)
    assert sced_loss(logits, ZERO).item() == pytest.approx(up**2 / 4 + down**2 * 3 / 4, rel=1e-12)
    normalized = (up**2 / 4 + down**2 * 3 / 4) / math.log(2) ** 2
    assert sced_loss(logits, ZERO, normalize="log_vocab").item() == pytest.approx(normalized, rel=1e-12)
    assert sced_loss(logits, ZERO, alpha=1, beta=0).item() == pytest.approx(up - down, rel=1e-12)


@GRID
@pytest.mark.parametrize("normalize", [None, "log_vocab"])
def test_against_the_reference(
    batch: tuple[Tensor, Tensor], reference: ModuleType, alpha: float, beta: float, normalize: str | None
) -> None:
    logits, labels = batch
    values = sced_loss(logits, labels, alpha=alpha, beta=beta, normalize=normalize, reduction="none")
    for where, _ in reference.rows(logits.numpy(), labels.numpy(), -100):
        expected = reference.sced(logits[where].numpy(), alpha, beta, normalize is not None)
        assert values[where].item() == pytest.approx(expected, rel=1e-10)


@GRID
def test_gradient_is_that_of_the_formula(
    batch: tuple[Tensor, Tensor], reference: ModuleType, alpha: float, beta: float
) -> None:
    logits, labels = batch
    logits.requires_grad_()
    sced_loss(logits, labels, alpha=alpha, beta=beta, reduction="sum").backward()
    assert logits.grad is not None
    for where, _ in reference.rows(logits.detach().numpy(), labels.numpy(), -100):
        expected = reference.sced_logit_gradient(logits.detach()[where].numpy(), alpha, beta)
        torch.testing.assert_close(logits.grad[where], torch.from_numpy(expected), rtol=1e-8, atol=1e-12)


@GRID
@pytest.mark.parametrize("normalize", [None, "log_vocab"])
def test_gradcheck_away_from_the_kink(alpha: float, beta: float, normalize: str | None) -> None:
    logits = row([2.0, -1.0, 0.1, -3.0, 1.3]).requires_grad_()
    away = (logits.softmax(-1) * 5 - 1).abs().min()
    assert away > 0.05
    assert torch.autograd.gradcheck(
        lambda scores: sced_loss(scores, ZERO, alpha=alpha, beta=beta, normalize=normalize), logits
    )


@GRID
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    "scores",
    [
        [1e4, -1e4, 0.0, 0.0],
        [1e4, 1e4, -1e4, -1e4],
        [-1e4, -1e4, -1e4, -1e4],
        [1e4, 1e4, 1e4, 1e4],
        [20.0, 0.0, 0.0, 0.0],
        [16.0, 0.0, -math.inf, -math.inf],
    ],
)
def test_extreme_logits_stay_finite(
    alpha: float, beta: float, dtype: torch.dtype, scores: list[float]
) -> None:
    logits = torch.tensor(scores, dtype=dtype, requires_grad=True)
    value = sced_loss(logits, ZERO, alpha=alpha, beta=beta)
    value.backward()
    assert value.isfinite()
    assert logits.grad is not None and logits.grad.isfinite().all()


@pytest.mark.parametrize("beta", [0.1, 0.5, 0.9])
def test_gradient_at_certainty_is_its_limit(beta: float) -> None:
    """The derivative of (1 - P)^beta is infinite at P = 1; that on the logit tends to 0."""
    sizes = []
    for margin in [10.0, 20.0, 30.0, 300.0]:  # at 300, P is 1 exactly
        logits = row([margin, 0.0, 0.0]).requires_grad_()
        sced_loss(logits, ZERO, beta=beta).backward()
        assert logits.grad is not None
        sizes.append(logits.grad.abs().max().item())
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 1e-100


@pytest.mark.parametrize("alpha", [1.0, 1.0001, 1.5, 2.0])
def test_subgradient_at_uniform_is_0(alpha: float) -> None:
    logits = torch.zeros(4, dtype=torch.float64, requires_grad=True)  # log P = -log 4 exactly
    value = sced_loss(logits, ZERO, alpha=alpha)
    value.backward()
    assert value.item() == 0
    assert logits.grad is not None and (logits.grad == 0).all()


def test_does_not_cancel_where_one_token_is_almost_certain() -> None:
    rest = 1e-13
    log_probs = row([math.log1p(-rest), math.log(rest)])
    top = (1 - rest) * (math.log1p(-rest) + math.log(2))
    tail = rest * (math.log(rest) + math.log(2))
    expected = abs(top) * rest + abs(tail) * (1 - rest)
    assert sced_per_position(log_probs, 1, 1, None).item() == pytest.approx(expected, rel=1e-12, abs=0)


@given(LOGITS, st.floats(1, 3), st.floats(0, 3))
def test_normalized_range(scores: list[float], alpha: float, beta: float) -> None:
    vocab = len(scores)
    value = sced_loss(row(scores), ZERO, alpha=alpha, beta=beta, normalize="log_vocab").item()
    # |q| / log V <= 1 per token, and their sum is at most 1 + 2 / (e log V).
    top = 1 + 2 / (math.e * math.log(vocab)) if vocab > 1 else 0
    assert 0 <= value <= top + 1e-12


@given(LOGITS, st.floats(-100, 100), st.sampled_from(ALPHAS), st.sampled_from(BETAS))
def test_a_constant_on_all_logits_changes_nothing(
    scores: list[float], constant: float, alpha: float, beta: float
) -> None:
    first = sced_loss(row(scores), ZERO, alpha=alpha, beta=beta)
    torch.testing.assert_close(
        sced_loss(row(scores) + constant, ZERO, alpha=alpha, beta=beta), first, rtol=1e-7, atol=1e-7
    )


@given(st.data())
def test_the_order_of_the_vocabulary_does_not_matter(data: st.DataObject) -> None:
    scores = data.draw(LOGITS)
    shuffled = data.draw(st.permutations(scores))
    torch.testing.assert_close(sced_loss(row(shuffled), ZERO), sced_loss(row(scores), ZERO))


@pytest.mark.parametrize("normalize", [None, "log_vocab"])
@GRID
def test_vocabulary_of_one(alpha: float, beta: float, normalize: str | None) -> None:
    logits = torch.tensor([5.0], requires_grad=True)
    value = sced_loss(logits, ZERO, alpha=alpha, beta=beta, normalize=normalize)
    value.backward()
    assert value.item() == 0
    assert logits.grad is not None and logits.grad.item() == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.5}, "alpha must be a finite number of at least 1, got 0.5"),
        ({"alpha": math.inf}, "alpha must be a finite number of at least 1, got inf"),
        ({"beta": -0.1}, "beta must be a finite number of at least 0, got -0.1"),
        ({"beta": math.nan}, "beta must be a finite number of at least 0, got nan"),
        ({"normalize": "vocab"}, "normalize must be one of None, 'log_vocab', got 'vocab'"),
    ],
)
def test_settings_out_of_range(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sced_loss(torch.zeros(3), ZERO, **settings)
