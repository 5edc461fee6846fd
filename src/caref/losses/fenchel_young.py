"""The losses of sparse alternatives to softmax, from the optional package entmax."""

from typing import Literal

import torch
from torch import Tensor

from caref.errors import MissingExtraError

SparseMapping = Literal["entmax15", "sparsemax"]


def require_entmax() -> None:
    """Raise unless the optional package is there.

    Raises:
        MissingExtraError: If it is not.
    """
    try:
        import entmax  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "the objectives entmax15 and sparsemax need the package entmax: pip install 'caref[entmax]'"
        ) from error


def fenchel_young_per_position(logits: Tensor, labels: Tensor, mapping: SparseMapping) -> Tensor:
    """The Fenchel-Young loss of a sparse mapping, shape ``(...)``.

    Args:
        logits: Finite scores, shape ``(..., vocab)``, float32 or float64.
        labels: Target ids, shape ``(...)``, int64.
        mapping: Whose loss.
    """
    from entmax import entmax15_loss, sparsemax_loss

    loss = entmax15_loss if mapping == "entmax15" else sparsemax_loss
    # Within the losses the scores are summed: a large common offset would cost them their digits.
    logits = logits - logits.detach().amax(-1, keepdim=True)
    with torch.autocast(logits.device.type, enabled=False):
        return loss(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)).reshape(labels.shape)


def sparse_distribution(logits: Tensor, mapping: SparseMapping) -> Tensor:
    """What the mapping makes of scores instead of softmax, shape ``(..., vocab)``."""
    from entmax import entmax15, sparsemax

    return (entmax15 if mapping == "entmax15" else sparsemax)(logits, dim=-1)
