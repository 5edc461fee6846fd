from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """The independent implementation that the losses are held against."""
    path = Path(__file__).with_name("reference.py")
    spec = importlib.util.spec_from_file_location("losses_reference", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def batch() -> tuple[Tensor, Tensor]:
    """Logits (3, 5, 11) in float64 and labels with ignored positions."""
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(3, 5, 11, dtype=torch.float64, generator=generator)
    labels = torch.randint(0, 11, (3, 5), generator=generator)
    labels[0, 3:] = -100
    labels[2, 0] = -100
    return logits, labels
