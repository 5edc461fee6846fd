"""The interface of a row kernel: the fused part, which sees a chunk of logits and knows its gradient."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from caref.losses.penalties import Penalties

IGNORED = -1
"""The label of a row that counts for nothing."""

LOWEST = -1e4
"""The least log-probability in ``P log P``: exp of less is 0 in every dtype, and -inf would give 0 * inf."""


class RowKernel(Protocol):
    """Values of the terms in every row of logits, and the gradient of their weighted sum.

    A pure function of each row: no row depends on another, and the same call gives the same bits.
    """

    def __call__(
        self,
        scores: Tensor,
        labels: Tensor,
        penalties: Penalties,
        *,
        softcap: float | None = None,
        penalised: Tensor | None = None,
        gradient: Tensor | None = None,
        scale: float | Tensor = 1.0,
    ) -> Tensor:
        """Compute.

        Args:
            scores: Logits, or what softcapping makes logits of; shape ``(rows, vocab)``, any float dtype.
                Half precision is computed in float32.
            labels: Shape ``(rows,)``, int64, within the vocabulary; negative where a row is ignored.
            penalties: Which terms there are, and their weights.
            softcap: Where set, the logits are ``softcap * tanh(s / softcap)`` of the scores s.
            penalised: Shape ``(rows,)``, bool: rows in which the penalties apply. None for all.
            gradient: Where the gradient on `scores` is written, shape and layout as `scores`; it may be
                `scores` itself. None where it is not wanted.
            scale: What the gradient, not the values, is multiplied by.

        Returns:
            Unweighted cross-entropy, SCED and KL, shape ``(3, rows)``, float32 or float64; 0 for a term
            that is absent, where a penalty does not apply, and in ignored rows.
        """
