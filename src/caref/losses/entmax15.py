"""The loss of 1.5-entmax, a sparse alternative to softmax."""

from dataclasses import dataclass

from torch import Tensor

from caref.losses.fenchel_young import fenchel_young_per_position, require_entmax, sparse_distribution
from caref.losses.objective import Objective, Term


@dataclass(eq=False, kw_only=True)
class Entmax15Objective(Objective):
    """The 1.5-entmax loss instead of cross-entropy: the sparse counterpart of softmax's.

    ``(p - e_label) . z + (1 - sum_v p^1.5) / 0.75`` with ``p = entmax15(z)``, which gives exact zeros.
    At least 0 (but for rounding), without unit; its gradient on the logits is ``p - e_label``. It replaces
    cross-entropy and has no penalty, so `span` changes nothing. Needs the extra ``caref[entmax]``;
    without it a MissingExtraError is raised when the objective is made.

    Decoding stays softmax's: the most likely token is the same, but what is reported as confidence is
    softmax's, which this loss did not train to be calibrated.

    Args:
        span: Where penalties apply: "all" target positions, the "answer" or the "explanation".
        separator_ids: Token ids that end the answer, needed for a span other than "all".
        shift: Compare logits at one position with the label at the next, for causal models.
        ignore_index: The label of padding and prompt positions.
        reduction: "mean" over kept positions, "sum" or "none".
        fused: "auto", "off" for the formula as it stands, or the kernel to use; see `Objective`.

    Source:
        Peters et al., 2019, arXiv:1905.05702; the package entmax, full sort.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        require_entmax()

    def terms(self, logits: Tensor, labels: Tensor) -> list[Term]:
        """The loss of 1.5-entmax."""
        return [Term("entmax15", fenchel_young_per_position(logits, labels, "entmax15"), everywhere=True)]

    def distribution(self, logits: Tensor) -> Tensor:
        """``entmax15(logits)``, with exact zeros; caref does not decode from it."""
        return sparse_distribution(logits, "entmax15")

    def scores(self, probabilities: Tensor) -> Tensor:
        """Logits whose `distribution` has these probabilities; shape of `probabilities`."""
        return 2 * probabilities.sqrt()
