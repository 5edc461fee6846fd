"""How many rows of logits are held at once."""

from __future__ import annotations

import torch

MIB = 2**20

# Below this the matrix products are slow: the weight is read anew for every chunk.
_FEWEST_ROWS = 16

# On a CPU 128 rows reach 90 % of the speed of any number of them. Of a small vocabulary more cost nothing.
_CPU_ROWS, _CPU_MIB = 128, 8


def rows_per_chunk(
    rows: int,
    hidden: int,
    vocab: int,
    *,
    itemsize: int,
    device: torch.device,
    memory_mib: float | None = None,
) -> int:
    """Rows of a chunk of logits, at least 1 and at most `rows`.

    Without a budget a chunk takes at most 64 MiB, and on an accelerator as much as the hidden states where
    that is more: the chunk then adds to the memory of a step no more than one layer's output does.

    Args:
        rows: All of them.
        hidden: Features of a hidden state.
        vocab: Columns of the logits.
        itemsize: Bytes of one logit.
        device: Where they are computed.
        memory_mib: The budget in MiB for a chunk; never fewer than 16 rows.

    Raises:
        ValueError: If the budget is not positive.
    """
    if memory_mib is not None and not memory_mib > 0:
        raise ValueError(f"memory_mib must be above 0, got {memory_mib}")
    on_cpu = device.type == "cpu"
    budget = memory_mib * MIB if memory_mib else max(64 * MIB, 0 if on_cpu else rows * hidden * itemsize)
    row = vocab * itemsize
    fitting = max(_FEWEST_ROWS, int(min(budget, rows * row)) // row)
    if on_cpu and memory_mib is None:
        fitting = min(fitting, max(_CPU_ROWS, _CPU_MIB * MIB // row))
    # Equal chunks: a last one of a few rows would cost as much as a whole one.
    chunks = -(-rows // fitting)
    return max(1, -(-rows // max(1, chunks)))
