"""How many rows of logits are held at once."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from caref.kernels.chunks import MIB, rows_per_chunk

CPU, GPU = torch.device("cpu"), torch.device("cuda")  # it is only asked for its type
DEVICES = st.sampled_from([CPU, GPU])


def sizes(rows: int, chunk: int) -> list[int]:
    return [min(chunk, rows - start) for start in range(0, rows, chunk)]


@given(
    rows=st.integers(0, 100_000),
    hidden=st.integers(1, 10_000),
    vocab=st.integers(1, 300_000),
    itemsize=st.sampled_from([2, 4, 8]),
    device=DEVICES,
    memory_mib=st.none() | st.floats(1e-9, 1e5) | st.just(math.inf),
)
def test_bounds_and_budget(
    rows: int, hidden: int, vocab: int, itemsize: int, device: torch.device, memory_mib: float | None
) -> None:
    chunk = rows_per_chunk(rows, hidden, vocab, itemsize=itemsize, device=device, memory_mib=memory_mib)
    assert isinstance(chunk, int)
    assert 1 <= chunk <= max(1, rows)
    if memory_mib is None:
        of_hidden = rows * hidden * itemsize if device is GPU else 0
        budget = max(64 * MIB, of_hidden)
    else:
        budget = memory_mib * MIB
    assert chunk <= 16 or chunk * vocab * itemsize <= budget
    if device is CPU and memory_mib is None:
        assert chunk <= max(128, 8 * MIB // (vocab * itemsize))
    parts = sizes(rows, chunk)
    # None is smaller than the others by more than there are of them, nor is there one that is not needed.
    assert not parts or max(parts) - min(parts) < len(parts)
    if rows > chunk and memory_mib is not None:
        fitting = max(16, int(budget // (vocab * itemsize)))
        assert len(parts) <= math.ceil(rows / fitting)


@pytest.mark.parametrize(
    ("rows", "hidden", "vocab", "device", "memory_mib", "expected"),
    [
        (10, 8, 32128, CPU, None, 10),
        (128, 8, 32128, CPU, None, 128),
        (130, 8, 32128, CPU, None, 65),  # not 128 and 2
        (1024, 8, 32128, CPU, None, 128),
        (5000, 8, 1000, CPU, None, 1667),  # 8 MiB are 2097 rows
        (1024, 8, 151936, CPU, None, 103),  # 64 MiB are 110 rows: ten chunks, all but equal
        (8192, 4096, 151936, CPU, None, 110),  # however large the hidden states are
        (1024, 1024, 32128, GPU, None, 512),  # 64 MiB are 522 rows
        (8192, 4096, 32128, GPU, None, 1024),  # as much as the hidden states: 1044 rows
        (8192, 4096, 32128, CPU, 1.0, 16),
        (8192, 4096, 32128, GPU, 1e-9, 16),
        (20_000, 4096, 32128, CPU, 1024.0, 6667),  # 8355 rows at most: three chunks
        (20, 4, 9, CPU, 1e-9, 10),  # not 16 and 4
        (0, 4, 9, CPU, None, 1),
        (20, 4, 9, GPU, math.inf, 20),
    ],
)
def test_by_hand(
    rows: int, hidden: int, vocab: int, device: torch.device, memory_mib: float | None, expected: int
) -> None:
    assert rows_per_chunk(rows, hidden, vocab, itemsize=4, device=device, memory_mib=memory_mib) == expected


def test_smaller_logits_make_larger_chunks() -> None:
    half, single = (
        rows_per_chunk(4096, 8, 32128, itemsize=size, device=GPU, memory_mib=32) for size in (2, 4)
    )
    assert (half, single) == (512, 256)


@pytest.mark.parametrize("budget", [0, 0.0, -1, -math.inf, math.nan])
def test_a_budget_that_is_none(budget: float) -> None:
    with pytest.raises(ValueError, match=f"memory_mib must be above 0, got {budget}"):
        rows_per_chunk(10, 4, 9, itemsize=4, device=CPU, memory_mib=budget)
