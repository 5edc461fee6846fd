"""One small run: two dozen examples of our own, a tiny random model, a tiny encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from caref.experiments.flat import spec_from_flat
from caref.experiments.run import execute
from caref.experiments.spec import RunSpec
from caref.results.run_directory import RunDirectory

DATA = Path(__file__).parent / "data"
ENCODER = Path(__file__).parents[1] / "metrics" / "golden" / "tiny-roberta"

MakeSpec = Callable[..., RunSpec]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def own_data() -> Path:
    """The folder of ``red.yaml``, a task, and ``short.yaml``, a prompt."""
    return DATA


@pytest.fixture(scope="session")
def settings(tiny_t5: Path) -> dict[str, Any]:
    """A small run by plain names."""
    return {
        "task": str(DATA / "red.yaml"),
        "model": str(tiny_t5),
        "encoder": str(ENCODER),
        "shots": 8,
        "eval_size": 6,
        "epochs": 2,
        "learning_rate": 1e-2,
        "max_new_tokens": 8,
    }


@pytest.fixture
def make_spec(settings: dict[str, Any]) -> MakeSpec:
    """The small run's spec; keywords change settings by plain name, None leaves one out."""

    def make(**changes: Any) -> RunSpec:
        given = {name: value for name, value in {**settings, **changes}.items() if value is not None}
        return spec_from_flat(given)

    return make


@pytest.fixture(scope="session")
def done(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """The small run, complete. Tests read it and change nothing."""
    spec = spec_from_flat(settings)
    root = tmp_path_factory.mktemp("runs")
    execute(spec, root)
    return RunDirectory(root / spec.directory_name)
