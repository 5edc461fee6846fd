"""However a step is divided, into micro-batches or among processes, its gradient is that of one big batch.

Micro-batches and processes have unequal numbers of target tokens. Everything is float64.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch import Tensor

SCRIPT = Path(__file__).with_name("gradients.py")
_spec = importlib.util.spec_from_file_location("gradients", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
loops = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(loops)

FAMILIES = {"encoder_decoder": "tiny_t5", "causal": "tiny_llama"}
CASES = [("encoder_decoder", name) for name in loops.ENCODER_DECODER_LOOPS]
CASES += [("causal", name) for name in loops.CAUSAL_LOOPS]


def check_equal(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert found[name].dtype == gradient.dtype, name
        assert gradient.norm() > 1e-6, name
        assert (found[name] - gradient).norm() <= 1e-6 * gradient.norm(), name


def test_the_parts_are_unequal() -> None:
    ours, theirs = sum(loops.LENGTHS[0::2]), sum(loops.LENGTHS[1::2])
    pairs = [sum(loops.LENGTHS[i : i + 2]) for i in range(0, len(loops.LENGTHS), 2)]
    assert ours > 3 * theirs
    assert len(set(pairs)) > 1


@pytest.mark.parametrize(("family", "name"), CASES)
def test_four_micro_batches_are_one_batch(
    request: pytest.FixtureRequest, tmp_path: Path, family: str, name: str
) -> None:
    folder = request.getfixturevalue(FAMILIES[family])
    kinds = loops.ENCODER_DECODER_LOOPS if family == "encoder_decoder" else loops.CAUSAL_LOOPS
    check_equal(loops.gradients_of(kinds[name], folder, tmp_path), loops.by_hand(folder))


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory, tiny_t5: Path, tiny_llama: Path) -> Path:
    """A folder with the gradients of every loop from each of two processes, of which torchrun starts both."""
    out = tmp_path_factory.mktemp("processes")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    launcher = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_addr", "127.0.0.1"]
    done = subprocess.run(
        [sys.executable, *launcher, "--master_port", port, SCRIPT, tiny_t5, tiny_llama, out],
        capture_output=True,
        text=True,
        env=environment,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return out


@pytest.mark.slow
@pytest.mark.parametrize(("family", "name"), CASES)
def test_two_processes_are_one(
    request: pytest.FixtureRequest, two_processes: Path, family: str, name: str
) -> None:
    expected = loops.by_hand(request.getfixturevalue(FAMILIES[family]))
    for rank in (0, 1):
        check_equal(load_file(two_processes / f"{family}-{name}-{rank}.safetensors"), expected)
