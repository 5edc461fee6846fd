from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from caref.models.loading import ModelSource, load_model


@pytest.fixture(scope="session")
def inputs() -> dict[str, Tensor]:
    """A batch that every tiny model can read."""
    ids = torch.arange(4, 40).reshape(3, 12)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "decoder_input_ids": ids[:, :5] + 3}


@pytest.fixture
def load(tiny_model: Path) -> Callable[[], torch.nn.Module]:
    """Loads the tiny model anew, as it was saved."""
    return lambda: load_model(ModelSource(str(tiny_model))).eval()
