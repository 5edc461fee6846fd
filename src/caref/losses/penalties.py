"""What an objective of cross-entropy, SCED and KL needs to say of itself to be computed by a fused kernel."""

import math
from typing import Literal, NamedTuple

Normalize = Literal["log_vocab"]


class Penalties(NamedTuple):
    """The penalties beside cross-entropy: ``CE + sced * SCED(alpha, beta) + kl * KL``."""

    sced: float | None = None
    """Weight of SCED, at least 0; None where there is no such term."""
    kl: float | None = None
    """Weight of KL from uniform, at least 0; None where there is no such term."""
    alpha: float = 2.0
    """SCED's exponent of a token's share of the divergence, at least 1."""
    beta: float = 1.0
    """SCED's exponent of 1 - P, at least 0."""
    normalize: Normalize | None = None
    """``"log_vocab"`` divides a token's share by log V in SCED."""

    @property
    def names(self) -> tuple[str, ...]:
        """The terms that there are, cross-entropy included, in their order."""
        return ("ce", *(name for name in ("sced", "kl") if getattr(self, name) is not None))

    def sced_unit(self, vocab: int) -> float:
        """What SCED of this vocabulary is divided by: normalizing q divides ``|q|^alpha`` by this."""
        # q is 0 for a vocabulary of one.
        return math.log(vocab) ** self.alpha if self.normalize and vocab > 1 else 1.0
