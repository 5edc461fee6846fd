"""The Triton kernel: in Triton's interpreter where there is no GPU, and compiled where there is one."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

triton = pytest.importorskip("triton")
tl = triton.language

from caref import losses  # noqa: E402
from caref.kernels import caref_loss, chunked, linear_caref_loss, triton_rows  # noqa: E402
from caref.losses.cross_entropy import cross_entropy_per_position  # noqa: E402
from caref.losses.kl_uniform import kl_uniform_per_position  # noqa: E402
from caref.losses.penalties import Penalties  # noqa: E402
from caref.losses.sced import sced_per_position  # noqa: E402

FLOAT32_EPS = torch.finfo(torch.float32).eps
ALPHAS = (1.0, 1.5, 2.0, 3.0)
BETAS = (0.0, 0.5, 1.0, 2.0, 1.7)
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
BOTH = Penalties(0.3, 0.2)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    compiled = isinstance(triton_rows._row, triton.JITFunction)
    if request.param == "cuda" and not (torch.cuda.is_available() and compiled):
        pytest.skip("needs a CUDA device, and TRITON_INTERPRET unset")
    if request.param == "cpu":
        if compiled and torch.cuda.is_available():
            pytest.skip("the kernel is compiled for the GPU of this machine")
        # Triton's own functions are interpreted or not as it was when Triton was imported.
        assert not isinstance(tl.sum, triton.JITFunction), "set TRITON_INTERPRET=1 before Triton is imported"
    return request.param


@dataclass
class Call:
    """A call of a row kernel."""

    scores: Tensor
    labels: Tensor
    penalties: Penalties = BOTH
    softcap: float | None = None
    penalised: Tensor | None = None
    scale: float | Tensor = 1.0

    def terms(self, kernel: Callable[..., Tensor], gradient: Tensor | None) -> Tensor:
        return kernel(
            self.scores,
            self.labels,
            self.penalties,
            softcap=self.softcap,
            penalised=self.penalised,
            gradient=gradient,
            scale=self.scale,
        )


def random_call(
    device: str, vocab: int, *, rows: int = 4, dtype: torch.dtype = torch.float32, **options: Any
) -> Call:
    """Rows from flat to confident; of the rows, one is ignored and holds NaN."""
    generator = torch.Generator().manual_seed(vocab)
    spread = torch.linspace(0.5, 6, rows).unsqueeze(1)
    scores = spread * torch.randn(rows, vocab, generator=generator)
    labels = torch.randint(0, vocab, (rows,), generator=generator)
    if rows > 2:
        labels[1], scores[1] = -1, math.nan
    return Call(scores.to(device, dtype), labels.to(device), **options)


def found(call: Call, *, in_place: bool = False) -> tuple[Tensor, Tensor]:
    """What the kernel gives; the call keeps its scores."""
    call = replace(call, scores=call.scores.clone())
    gradient = call.scores if in_place else torch.full_like(call.scores, math.nan)
    terms = call.terms(triton_rows.row_terms, gradient)
    assert terms.shape == (3, len(call.scores))
    assert terms.dtype == torch.float32
    return terms, gradient


def eager(call: Call, *, wide: bool) -> tuple[Tensor, Tensor]:
    """The same by the functions of `caref.losses` and autograd, in float64 where `wide`."""
    leaf = call.scores.double() if wide else call.scores
    leaf = leaf.detach().clone().requires_grad_()
    counted = call.labels >= 0
    scores = leaf.masked_fill(~counted.unsqueeze(1), 0.0)
    scores = scores if wide else scores.float()
    if call.softcap is not None:
        scores = call.softcap * torch.tanh(scores / call.softcap)
    log_probs = scores.log_softmax(-1)
    ce = cross_entropy_per_position(log_probs, call.labels.clamp(min=0)) * counted
    where = counted if call.penalised is None else counted & call.penalised
    sced = kl = torch.zeros_like(ce)
    of = call.penalties
    if of.sced is not None:
        sced = sced_per_position(log_probs, of.alpha, of.beta, of.normalize) * where
    if of.kl is not None:
        kl = kl_uniform_per_position(log_probs) * where
    total = (ce + (of.sced or 0.0) * sced + (of.kl or 0.0) * kl).sum() * call.scale
    (gradient,) = torch.autograd.grad(total, leaf)
    return torch.stack([ce, sced, kl]).detach(), gradient


def largest(tensor: Tensor) -> float:
    return tensor.abs().max().item() if tensor.numel() else 0.0


def assert_right(call: Call, slack: float = 0.0, **options: Any) -> None:
    """Errors are at most the eager formula's in that dtype, and 32 float32 digits; `slack` in gradients."""
    exact, same = eager(call, wide=True), eager(call, wide=False)
    for mine, its, right, more in zip(found(call, **options), same, exact, (0.0, slack), strict=True):
        assert_no_worse(mine, its, right, more)


def assert_no_worse(mine: Tensor, its: Tensor, right: Tensor, slack: float = 0.0) -> None:
    assert mine.shape == its.shape and mine.dtype == its.dtype
    assert mine.isfinite().all()
    limit = largest(its.double() - right) + 32 * FLOAT32_EPS * max(1.0, largest(right)) + slack
    error = (mine.double() - right).abs()
    if mine.dtype == torch.bfloat16 and mine.device.type == "cpu":
        # The interpreter cuts off what a GPU rounds: up to the last digit of each number is lost.
        error -= torch.finfo(torch.bfloat16).eps * right.abs()
    assert largest(error.clamp(min=0)) <= limit


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("beta", BETAS)
def test_exponents(device: str, alpha: float, beta: float) -> None:
    normalize = "log_vocab" if beta in (0.5, 1.0) else None
    call = random_call(device, 100, penalties=Penalties(0.3, 0.2, alpha, beta, normalize))
    assert_right(call)
    terms, gradient = found(call)
    room = torch.empty_like(call.scores)
    torch.testing.assert_close(terms, call.terms(chunked.row_terms, room), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient, room, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("vocab", [1, 7, 100, 1000, 4097])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("softcap", [None, 4.0])
def test_vocabularies_and_dtypes(device: str, vocab: int, dtype: torch.dtype, softcap: float | None) -> None:
    penalised = torch.tensor([True, True, False, True], device=device)
    call = random_call(device, vocab, dtype=dtype, softcap=softcap, penalised=penalised, scale=0.7)
    assert_right(call, in_place=True)
    terms, _ = found(call)
    assert not terms[:, 1].any() and not terms[1:, 2].any()
    assert vocab == 1 or terms[:, 3].all()


@pytest.mark.parametrize("rows", [2, pytest.param(4, marks=pytest.mark.gpu)])
def test_a_vocabulary_as_models_have_it(device: str, rows: int) -> None:
    assert_right(random_call(device, 32128, rows=rows))


@pytest.mark.slow
@pytest.mark.parametrize("penalties", [BOTH, Penalties(0.3, 0.2, 1.5, 0.5)])
def test_the_largest_vocabulary(device: str, penalties: Penalties) -> None:
    assert_right(random_call(device, 262144, rows=3, penalties=penalties, softcap=30.0), in_place=True)


@pytest.mark.parametrize(
    "penalties", [Penalties(), Penalties(sced=0.3), Penalties(kl=0.2), Penalties(0.0, 0.0)]
)
def test_absent_terms_are_0(device: str, penalties: Penalties) -> None:
    call = random_call(device, 100, penalties=penalties)
    assert_right(call)
    terms, _ = found(call)
    kept = [True, penalties.sced is not None, penalties.kl is not None]
    assert [bool(term.any()) for term in terms] == kept


def test_where_no_gradient_is_wanted_the_terms_are_the_same(device: str) -> None:
    call = random_call(device, 100)
    assert torch.equal(call.terms(triton_rows.row_terms, None), found(call)[0])


@pytest.mark.parametrize("vocab", [7, 4097])
@pytest.mark.parametrize("penalties", [BOTH, Penalties()])
def test_in_place_and_with_the_scale_on_the_device_it_is_the_same(
    device: str, vocab: int, penalties: Penalties
) -> None:
    call = random_call(device, vocab, penalties=penalties, scale=0.375)
    terms, gradient = found(call)
    for scale in (torch.tensor(0.375), torch.tensor(0.375, dtype=torch.float64)):
        again = found(replace(call, scale=scale.to(device)), in_place=True)
        assert torch.equal(again[0], terms) and torch.equal(again[1], gradient)


def test_the_same_bits_each_time_and_whatever_the_other_rows(device: str) -> None:
    call = random_call(device, 1000, rows=5)
    terms, gradient = found(call)
    assert torch.equal(found(call)[1], gradient)
    for row in (0, 3):
        part = slice(row, row + 1)
        alone = found(replace(call, scores=call.scores[part], labels=call.labels[part]))
        assert torch.equal(alone[0], terms[:, part]) and torch.equal(alone[1], gradient[part])


@pytest.mark.parametrize("content", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("in_place", [False, True])
def test_what_ignored_rows_hold_does_not_matter(device: str, content: float, in_place: bool) -> None:
    call = random_call(device, 2050)
    call.scores[0, 5], call.scores[2] = content, content
    call.labels[:3] = torch.tensor([-1, -100, -7], device=device)
    terms, gradient = found(call, in_place=in_place)
    assert not terms[:, :3].any() and not gradient[:3].any()
    assert terms[:, 3].all() and gradient[3].any()


def test_a_number_that_is_none_shows(device: str) -> None:
    call = random_call(device, 100)
    call.scores[3, 7] = math.nan
    terms, gradient = found(call)
    assert terms[:, 3].isnan().all() and gradient[3].isnan().all()
    assert terms[:, :3].isfinite().all() and gradient[:3].isfinite().all()


def test_no_rows(device: str) -> None:
    call = Call(torch.empty(0, 5, device=device), torch.empty(0, dtype=torch.int64, device=device))
    assert found(call)[0].shape == (3, 0)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("lay", ["columns", "rows", "transposed", "expanded"])
def test_rows_may_lie_in_any_way(device: str, lay: str, in_place: bool) -> None:
    call = random_call(device, 50, rows=6, penalised=torch.tensor([True, False] * 3, device=device))
    call.scores[1] = call.scores[0]
    if lay == "expanded":
        call.scores[:] = call.scores[0]
    terms, gradient = found(call)
    base = torch.full((12, 60), math.pi, device=device)
    view = {
        "columns": base[:6, 3:53],
        "rows": base[1::2, :50],
        "transposed": base.view(60, 12)[:50, 2:8].t(),
        "expanded": base[:1, :50].expand(6, 50),
    }[lay]
    (view[:1] if lay == "expanded" else view).copy_(call.scores[: 1 if lay == "expanded" else 6])
    outside = base.sum() - (view[:1] if lay == "expanded" else view).sum()
    lying = replace(call, scores=view)
    # Nothing can be written to an expanded tensor.
    room = view if in_place and lay != "expanded" else torch.full((50, 6), math.nan, device=device).t()
    assert torch.equal(lying.terms(triton_rows.row_terms, room), terms)
    assert torch.equal(room, gradient)
    if room is view:
        torch.testing.assert_close(base.sum() - view.sum(), outside)


def extreme_rows(vocab: int) -> dict[str, Tensor]:
    zeros = torch.zeros(vocab)
    some = torch.arange(vocab) % 3 == 0
    return {
        "one_hot": zeros.index_fill(0, torch.tensor([2]), 1e4),
        "all_but_one": zeros.index_fill(0, torch.tensor([2]), -1e4),
        "two": torch.full((vocab,), -1e4).index_fill(0, torch.tensor([2, vocab - 1]), 1e4),
        "excluded": torch.randn(vocab, generator=torch.Generator().manual_seed(0)).masked_fill(
            some, -math.inf
        ),
        "first_block_excluded": (zeros + 1).masked_fill(torch.arange(vocab) < vocab - 2, -math.inf),
        "lowest": torch.full((vocab,), torch.finfo(torch.float32).min),
        "high": zeros + 1e4 + torch.arange(vocab) % 2,
    }


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_extreme_scores(device: str, alpha: float, beta: float) -> None:
    penalties = Penalties(0.3, 0.2, alpha, beta)
    for name, row in extreme_rows(2100).items():
        label = torch.tensor([2099 if name in ("excluded", "first_block_excluded") else 2], device=device)
        call = Call(row.unsqueeze(0).to(device), label, penalties)
        # In a flat row the sign of q is that of a rounding error, and decides by 1 / V.
        assert_right(call, slack=0.3 / 2100 if alpha == 1 and name == "lowest" else 0.0)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("vocab", [2, 7, 1000])
def test_uniform_rows(device: str, alpha: float, vocab: int) -> None:
    scores = torch.tensor([[0.0], [-3.3], [1e4]], device=device).expand(3, vocab).contiguous()
    call = Call(scores, torch.tensor([0, vocab - 1, 1], device=device), Penalties(0.3, 0.2, alpha))
    terms, gradient = found(call)
    assert largest(terms[0] - math.log(vocab)) < 1e-5
    assert largest(terms[1:]) < 1e-5
    by_ce = 1 / vocab - torch.nn.functional.one_hot(call.labels, vocab)
    # At alpha = 1 the derivative jumps here, and a rounding error chooses the side, one for all tokens.
    assert largest(gradient - by_ce) < 1e-6 + (0.3 / vocab if alpha == 1 else 0)


def test_the_label_of_an_excluded_token_is_infinitely_unlikely(device: str) -> None:
    scores = torch.tensor([[0.0, -math.inf, 1.0]], device=device)
    terms, gradient = found(Call(scores, torch.tensor([1], device=device)))
    assert terms[0].item() == math.inf
    assert terms[1:].isfinite().all() and gradient.isfinite().all()


def test_a_large_common_offset_costs_only_what_rounding_the_scores_costs(device: str) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = (torch.randn(2, 300, generator=generator) * 4).round().to(device)
    call = Call(scores, torch.tensor([5, 9], device=device))
    near, far = found(call), found(replace(call, scores=scores + 2.0**20))
    assert torch.equal(near[0], far[0]) and torch.equal(near[1], far[1])


@pytest.mark.parametrize("softcap", [0.5, 30.0])
def test_softcap_of_small_and_of_huge_scores(device: str, softcap: float) -> None:
    scores = torch.tensor([0.0, 1e-6, -1e-3, 0.06, -0.07, 1.0, -20.0, 100.0, -1e4, 1e37], device=device)
    call = Call(scores.unsqueeze(0), torch.tensor([3], device=device), softcap=softcap)
    assert_right(call)


@triton.jit
def one_minus_exp(x, out, block: tl.constexpr):
    lanes = tl.arange(0, block)
    tl.store(out + lanes, triton_rows._one_minus_exp(tl.load(x + lanes)))


def test_one_minus_exp_keeps_its_digits_near_0(device: str) -> None:
    x = -torch.logspace(-30, 2, 4096, dtype=torch.float64).float().to(device)
    x[0], x[1], x[2] = 0.0, -0.25, -math.inf
    out = torch.empty_like(x)
    one_minus_exp[(1,)](x, out, block=4096)
    expected = -torch.expm1(x.double())
    assert out[0] == 0
    assert largest(out[1:] / expected[1:] - 1) < 1e-6


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("items", [None, torch.tensor(11)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_whole_loss_of_logits(
    device: str, reduction: str, items: Tensor | None, dtype: torch.dtype
) -> None:
    call = random_call(device, 60, rows=6, dtype=dtype)
    labels = call.labels.masked_fill(call.labels < 0, -100).view(2, 3)
    options = {
        "mask": torch.tensor([[True, True, False], [True, True, True]], device=device),
        "penalty_mask": torch.tensor([[True, False, True], [True, False, True]], device=device),
        "num_items_in_batch": items if items is None else items.to(device),
        "reduction": reduction,
        "alpha": 1.5,
    }
    logits = call.scores.view(2, 3, 60)

    def outcome(loss: Callable[..., Tensor], logits: Tensor, **more: str) -> tuple[Tensor, Tensor]:
        leaf = logits.detach().clone().requires_grad_()
        value = loss(leaf, labels, **options, **more)
        (gradient,) = torch.autograd.grad(value.sum(), leaf)
        return value.detach(), gradient

    exact = outcome(losses.caref_loss, logits.double())
    same = outcome(losses.caref_loss, logits)
    mine = outcome(caref_loss, logits, fused="triton")
    for each, its, right in zip(mine, same, exact, strict=True):
        assert_no_worse(each, its, right)


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("softcap", [None, 3.0])
def test_the_whole_loss_of_hidden_states(device: str, reduction: str, softcap: float | None) -> None:
    generator = torch.Generator().manual_seed(0)
    hidden, weight, bias = (
        torch.randn(shape, generator=generator).to(device) for shape in ((40, 8), (70, 8), (70,))
    )
    labels = torch.randint(0, 70, (40,), generator=generator)
    labels[::5] = -100
    options: dict[str, Any] = {
        "reduction": reduction,
        "penalty_mask": torch.arange(40, device=device) % 3 > 0,
    }
    labels = labels.to(device)

    def by_logits(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        logits = 0.7 * (hidden @ weight.T + bias)
        logits = logits if softcap is None else softcap * torch.tanh(logits / softcap)
        return losses.caref_loss(logits, labels, **options)

    def by_head(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        head = {"scale": 0.7, "softcap": softcap, "fused": "triton", "memory_mib": 1e-6}
        return linear_caref_loss(hidden, weight, labels, bias=bias, **head, **options)

    def outcome(loss: Callable[..., Tensor], *leaves: Tensor) -> list[Tensor]:
        leaves = tuple(leaf.detach().clone().requires_grad_() for leaf in leaves)
        value = loss(*leaves)
        return [value.detach(), *torch.autograd.grad(value.sum(), leaves)]

    exact = outcome(by_logits, hidden.double(), weight.double(), bias.double())
    for mine, right in zip(outcome(by_head, hidden, weight, bias), exact, strict=True):
        assert largest(mine.double() - right) <= 1e-5 * max(1.0, largest(right))


def test_tuning_leaves_the_scores_as_they_were(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned = triton_rows._tuned_in_place
    tried = []

    def bench(call: Callable[[], None], quantiles: tuple[float, ...]) -> list[float]:
        call()
        call()
        tried.append(quantiles)
        return [float(len(tried))] * 3

    call = random_call(device, 3000, rows=3)
    expected = found(call)
    monkeypatch.setitem(vars(tuned), "do_bench", bench)
    monkeypatch.setattr(tuned, "cache", {})
    monkeypatch.setattr(triton_rows, "_launcher", lambda scores, gradient: tuned)
    terms, gradient = found(call, in_place=True)
    assert len(tried) == len(triton_rows._CANDIDATES)
    torch.testing.assert_close(terms, expected[0])
    torch.testing.assert_close(gradient, expected[1])
    found(random_call(device, 3500, rows=5, scale=0.5), in_place=True)
    assert len(tried) == len(triton_rows._CANDIDATES)


def test_which_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_rows, "_row", object.__new__(triton.JITFunction))
    monkeypatch.delenv("CAREF_TRITON_AUTOTUNE", raising=False)
    scores, other = torch.zeros(4, 5), torch.zeros(4, 5)
    assert triton_rows._launcher(scores, None) is triton_rows._tuned
    assert triton_rows._launcher(scores, other) is triton_rows._tuned
    assert triton_rows._launcher(scores[1:], scores[1:]) is triton_rows._tuned_in_place
    monkeypatch.setenv("CAREF_TRITON_AUTOTUNE", "0")
    assert triton_rows._launcher(scores, scores) is triton_rows._fixed
    assert triton_rows._tuned.restore_value == [] and triton_rows._fixed.restore_value == []


# The interpreter runs Python, of which Triton's compiler takes only a part.
COMPILE = """
import sys
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from caref.kernels.triton_rows import _FIXED, _row

def check(dtype, alpha, beta, sced=True, kl=True, softcap=True, gradient=True, penalised=True, pointer=True):
    types = {"scores": "*" + dtype, "gradient": "*" + dtype, "labels": "*i64", "penalised": "*u8",
             "terms": "*fp32", "scale": "*fp32" if pointer else "fp32"}
    integers = ("scores_stride", "gradient_stride", "rows", "vocab", "bucket")
    fixed = {"scale_at_pointer": pointer, "with_sced": sced, "with_kl": kl, "alpha": alpha, "beta": beta,
             "block": _FIXED.kwargs["block"]}
    given = {"softcap": softcap, "gradient": gradient, "penalised": penalised}
    fixed |= {name: None for name, there in given.items() if not there}
    types |= dict.fromkeys(integers, "i32") | dict.fromkeys(fixed, "constexpr")
    signature = {name: types.get(name, "fp32") for name in _row.arg_names}
    source = ASTSource(_row, signature, fixed)
    assert "ptx" in compile(source, GPUTarget("cuda", 90, 32), {"num_warps": _FIXED.num_warps}).asm

check("bf16", 2.0, 1.0)
check("fp32", 1.0, 0.0, softcap=False, penalised=False, pointer=False)
check("fp16", 1.5, 0.5, kl=False)
check("fp32", 3.0, 2.0, sced=False)
check("fp32", 2.0, 2.0, gradient=False)
check("bf16", 2.0, 1.0, sced=False, kl=False, softcap=False)
"""


def test_it_compiles_for_a_gpu(tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text(COMPILE)
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path / "cache")
    run = subprocess.run(
        [sys.executable, str(tmp_path / "check.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, run.stderr


@pytest.fixture
def cuda() -> str:
    if not torch.cuda.is_available() or not isinstance(triton_rows._row, triton.JITFunction):
        pytest.skip("needs a CUDA device, and TRITON_INTERPRET unset")
    return "cuda"


@pytest.mark.gpu
@pytest.mark.parametrize("vocab", [32128, 50257, 128256])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("in_place", [False, True])
def test_a_batch_as_in_training(cuda: str, vocab: int, dtype: torch.dtype, in_place: bool) -> None:
    penalised = torch.arange(300, device=cuda) % 4 > 0
    assert_right(
        random_call(cuda, vocab, rows=300, dtype=dtype, penalised=penalised, scale=1 / 299), in_place=in_place
    )


@pytest.mark.gpu
def test_more_than_two_to_the_31_values(cuda: str) -> None:
    if torch.cuda.mem_get_info()[0] < 12 << 30:
        pytest.skip("needs 12 GiB of free memory")
    few = random_call(cuda, 128256, rows=3, dtype=torch.bfloat16)
    rows = 2**31 // 128256 + 8
    scores = torch.zeros(rows, 128256, dtype=torch.bfloat16, device=cuda)
    labels = torch.full((rows,), -1, device=cuda)
    scores[-3:], labels[-3:] = few.scores, few.labels
    gradient = torch.full_like(scores, math.nan)
    terms = Call(scores, labels).terms(triton_rows.row_terms, gradient)
    expected = found(few)
    torch.testing.assert_close(terms[:, -3:], expected[0])
    torch.testing.assert_close(gradient[-3:], expected[1])
    assert not terms[:, :-3].any() and not gradient[:-3].any()


@pytest.mark.gpu
def test_the_host_never_waits(cuda: str) -> None:
    call = random_call(cuda, 32128, rows=64, scale=torch.tensor(0.5, device=cuda))
    room = torch.empty_like(call.scores)
    call.terms(triton_rows.row_terms, room)  # compiles and tunes
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        call.terms(triton_rows.row_terms, room)
    finally:
        torch.cuda.set_sync_debug_mode(mode)


@pytest.mark.gpu
def test_with_a_fixed_configuration_every_process_gives_the_same_bits(cuda: str, tmp_path: Path) -> None:
    script = (
        "import hashlib, torch\n"
        "from caref.kernels.triton_rows import row_terms\n"
        "from caref.losses.penalties import Penalties\n"
        "scores = torch.randn(64, 50257, generator=torch.Generator().manual_seed(0)).cuda()\n"
        "terms = row_terms(scores, torch.arange(64).cuda(), Penalties(0.3, 0.2), gradient=scores)\n"
        "data = terms.cpu().numpy().tobytes() + scores.cpu().numpy().tobytes()\n"
        "print(hashlib.sha256(data).hexdigest())\n"
    )
    environment = dict(os.environ, CAREF_TRITON_AUTOTUNE="0", TRITON_CACHE_DIR=str(tmp_path))
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(outputs) == 1
