from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from caref.models.loading import ModelSource, load_model


@pytest.fixture(scope="session")
def batch() -> Tensor:
    """Tokens that every tiny model has."""
    return torch.arange(4, 40).reshape(3, 12)


@pytest.fixture
def inputs(batch: Tensor, tiny_any: Path) -> dict[str, Tensor]:
    """What the tiny model in turn reads."""
    return inputs_of(tiny_any, batch)


@pytest.fixture
def load(tiny_any: Path) -> Callable[[], torch.nn.Module]:
    """Loads the tiny model in turn anew, as it was saved."""
    return lambda: load_model(ModelSource(str(tiny_any))).eval()


def inputs_of(path: Path, batch: Tensor) -> dict[str, Tensor]:
    import families

    inputs = {"input_ids": batch, "attention_mask": torch.ones_like(batch)}
    if path.name.replace("-", "_") in families.ENCODER_DECODERS:
        inputs["decoder_input_ids"] = batch[:, :5] + 3
    return inputs
