"""Products with the head's weight, against those of PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from caref.kernels.products import linear

# Switching oneDNN off and on mentions GPUs of Intel.
pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


class Operations(TorchDispatchMode):
    """Notes the names of all operations."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))

    @property
    def mkldnn(self) -> bool:
        return any("mkldnn" in name for name in self.names)


def tensors(rows: int, dtype: torch.dtype, *, transposed: bool) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    weight = torch.randn(8, 21, dtype=torch.float64).t() if transposed else torch.randn(21, 8)
    inputs, bias = torch.randn(rows, 8, dtype=torch.float64), torch.randn(21, dtype=torch.float64)
    weight = weight.to(dtype)
    assert weight.is_contiguous() != transposed
    return inputs.to(dtype), weight, bias.to(dtype)


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 33])
@pytest.mark.parametrize("dtype", DTYPES)
def test_as_torch(dtype: torch.dtype, rows: int, transposed: bool, with_bias: bool, enabled: bool) -> None:
    inputs, weight, bias = tensors(rows, dtype, transposed=transposed)
    given = bias if with_bias else None
    with torch.backends.mkldnn.flags(enabled=enabled):
        found = linear(inputs, weight, given)
    expected = F.linear(inputs.double(), weight.double(), None if given is None else given.double())
    assert found.shape == (rows, 21)
    assert found.dtype == dtype
    tolerance = 16 * torch.finfo(dtype).eps
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("size", [(33, 1), (1, 8)])
def test_any_layout_of_the_inputs(size: tuple[int, int]) -> None:
    rows, features = size
    weight = torch.randn(5, features)
    for inputs in (torch.randn(features, rows).t(), torch.randn(rows, 3 * features)[:, ::3]):
        torch.testing.assert_close(linear(inputs, weight), F.linear(inputs, weight))


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="PyTorch was built without oneDNN")
def test_onednn_has_float32_alone_and_can_be_switched_off() -> None:
    def goes_to_onednn(rows: int, dtype: torch.dtype) -> bool:
        inputs, weight, bias = tensors(rows, dtype, transposed=False)
        with Operations() as operations:
            linear(inputs, weight, bias)
        return operations.mkldnn

    assert goes_to_onednn(3, torch.float32)
    assert not goes_to_onednn(0, torch.float32)
    assert not goes_to_onednn(3, torch.float64)
    with torch.backends.mkldnn.flags(enabled=False):
        assert not goes_to_onednn(3, torch.float32)


def test_it_keeps_no_graph_where_none_is_wanted() -> None:
    inputs, weight, bias = (each.requires_grad_() for each in tensors(3, torch.float32, transposed=False))
    with torch.no_grad():
        assert not linear(inputs, weight, bias).requires_grad
