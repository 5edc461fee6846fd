"""A training stopped in its middle and begun again ends with the same weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from caref.losses import CarefLoss

Run = Callable[..., Any]


class StoppedError(Exception):
    pass


def stop_at(step: int) -> Callable[[int, int], None]:
    def on_step(done: int, _: int) -> None:
        if done == step:
            raise StoppedError

    return on_step


@pytest.mark.parametrize(
    "method",
    ["aq", "base", pytest.param("lora", marks=pytest.mark.slow), pytest.param("dec", marks=pytest.mark.slow)],
)
def test_resumed_is_as_if_never_stopped(tiny_model: Path, run: Run, tmp_path: Path, method: str) -> None:
    def start(work_dir: Path, on_step: Callable[[int, int], None] | None = None) -> Any:
        return run(
            tiny_model,
            method=method,
            objective=CarefLoss(sced_warmup=0.5),
            work_dir=work_dir,
            on_step=on_step,
            epochs=4,
            checkpoint_epochs=1,
            warmup_fraction=0.3,
        )

    whole = start(tmp_path / "whole")
    with pytest.raises(StoppedError):
        start(tmp_path / "part", stop_at(5))
    assert [path.name for path in (tmp_path / "part").iterdir()] == ["checkpoint-4"]
    steps: list[int] = []
    resumed = start(tmp_path / "part", lambda done, _: steps.append(done))
    assert steps == [5, 6, 7, 8]
    for name, weight in whole.weights.items():
        assert torch.equal(resumed.weights[name], weight), name
    keys = ("step", "loss", "ce", "sced", "kl", "learning_rate")
    assert [[e[k] for k in keys] for e in resumed.log] == [[e[k] for k in keys] for e in whole.log]


def test_a_checkpoint_of_an_adapter_holds_no_base_model(tiny_t5: Path, run: Run, tmp_path: Path) -> None:
    run(tiny_t5, checkpoint_epochs=1, work_dir=tmp_path / "work")
    names = {path.name for path in (tmp_path / "work" / "checkpoint-4").iterdir()}
    assert "adapter_model.safetensors" in names
    assert not {"model.safetensors", "pytorch_model.bin"} & names


def test_checkpoints_every_second_epoch_and_the_last_alone(tiny_t5: Path, run: Run, tmp_path: Path) -> None:
    run(tiny_t5, epochs=5, checkpoint_epochs=2, work_dir=tmp_path / "work")
    (left,) = (tmp_path / "work").iterdir()
    state = json.loads((left / "trainer_state.json").read_text())
    # Two steps an epoch: after epochs 2 and 4, and at the end.
    assert state["global_step"] == 10
    assert state["save_steps"] == 4


def test_a_half_written_checkpoint_is_passed_over(tiny_t5: Path, run: Run, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": 4, "checkpoint_epochs": 1}
    whole = run(tiny_t5, work_dir=tmp_path / "whole", **settings)
    with pytest.raises(StoppedError):
        run(tiny_t5, work_dir=tmp_path / "part", on_step=stop_at(5), **settings)
    # As a kill in the middle of writing leaves it: the Trainer writes its state last.
    half = tmp_path / "part" / "checkpoint-6"
    half.mkdir()
    (half / "adapter_model.safetensors").write_bytes(b"half")
    resumed = run(tiny_t5, work_dir=tmp_path / "part", **settings)
    for name, weight in whole.weights.items():
        assert torch.equal(resumed.weights[name], weight), name


def test_without_checkpoints_nothing_is_resumed(tiny_t5: Path, run: Run, tmp_path: Path) -> None:
    run(tiny_t5, checkpoint_epochs=1, work_dir=tmp_path / "work")
    steps: list[int] = []
    run(tiny_t5, work_dir=tmp_path / "work", on_step=lambda done, _: steps.append(done))
    assert steps == [1, 2, 3, 4]
