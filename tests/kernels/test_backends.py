"""Which kernel runs, where more than one could."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from caref.kernels import backends, chunked
from caref.kernels.backends import choose_backend, triton_agrees

CPU, GPU = torch.device("cpu"), torch.device("cuda")  # it is only asked for its type


@pytest.fixture(autouse=True)
def afresh() -> Iterator[None]:
    triton_agrees.cache_clear()
    yield
    triton_agrees.cache_clear()


def test_the_triton_kernel_agrees_with_the_chunked_one() -> None:
    pytest.importorskip("triton")
    assert triton_agrees(CPU)  # in the interpreter


def test_a_triton_kernel_that_does_not_compile_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> torch.Tensor:
        raise RuntimeError("no such\narchitecture")

    monkeypatch.setattr(backends, "row_kernel", {"triton": broken, "chunked": chunked.row_terms}.get)
    told = "does not work on cpu, the chunked one is taken: no such architecture"
    with pytest.warns(UserWarning, match=told):
        assert not triton_agrees(CPU)
    assert not triton_agrees(CPU)  # said once


def test_a_triton_kernel_that_is_wrong_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: Any, gradient: torch.Tensor, **options: Any) -> torch.Tensor:
        terms = chunked.row_terms(*given, gradient=gradient, **options)
        gradient[0, 5] += 0.01
        return terms

    monkeypatch.setattr(backends, "row_kernel", {"triton": wrong, "chunked": chunked.row_terms}.get)
    with pytest.warns(UserWarning, match="not close"):
        assert not triton_agrees(CPU)


@pytest.mark.parametrize(
    ("device", "dtype", "agrees", "chosen"),
    [
        (GPU, torch.bfloat16, True, "triton"),
        (GPU, torch.bfloat16, False, "chunked"),
        (GPU, torch.float64, True, "chunked"),
        (CPU, torch.float32, True, "chunked"),
    ],
)
def test_auto(
    monkeypatch: pytest.MonkeyPatch, device: torch.device, dtype: torch.dtype, agrees: bool, chosen: str
) -> None:
    monkeypatch.setattr(backends, "triton_agrees", lambda device: agrees)
    monkeypatch.setattr(backends, "_has_triton", lambda: True)
    assert choose_backend(device, dtype) == chosen
    monkeypatch.setattr(backends, "_has_triton", lambda: False)
    assert choose_backend(device, dtype) == "chunked"
