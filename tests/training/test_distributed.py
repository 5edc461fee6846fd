"""Two processes on two halves of each batch end where one process on whole batches does."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from torch import Tensor

SCRIPT = Path(__file__).with_name("distributed.py")

pytestmark = pytest.mark.slow


def free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def launch(*command: str) -> None:
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280, check=False)
    assert run.returncode == 0, run.stderr[-4000:]


def outcome(folder: Path, rank: int) -> tuple[dict[str, Tensor], int, list[dict[str, Any]]]:
    steps, history = json.loads((folder / f"rank{rank}.json").read_text())
    return (
        load_file(folder / f"rank{rank}.safetensors"),
        steps,
        [entry for entry in history if "loss" in entry],
    )


@pytest.mark.parametrize("method", ["aq", "base"])
def test_two_processes_are_one_with_twice_the_batch(tiny_t5: Path, tmp_path: Path, method: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    launcher = ["torch.distributed.run", "--nproc_per_node", "2", "--master_addr", "127.0.0.1"]
    launcher += ["--master_port", free_port()]
    launch(sys.executable, "-m", *launcher, str(SCRIPT), str(tiny_t5), method, "2", str(two))
    launch(sys.executable, str(SCRIPT), str(tiny_t5), method, "4", str(one))

    alone, steps, log = outcome(one, 0)
    first, first_steps, first_log = outcome(two, 0)
    second, second_steps, _ = outcome(two, 1)
    assert steps == first_steps == second_steps == 8
    assert first.keys() == second.keys() == alone.keys()
    for name, weight in alone.items():
        assert (first[name] == second[name]).all(), name
        assert (first[name] - weight).norm() < 1e-3 * weight.norm(), name
    # The same schedule, the same entries.
    for key in ("step", "learning_rate"):
        assert [entry[key] for entry in first_log] == [entry[key] for entry in log]
    assert [e["loss"] for e in first_log] == pytest.approx([e["loss"] for e in log], rel=1e-3)
    assert sorted(path.name for path in (two / "work").iterdir()) == ["checkpoint-8"]
