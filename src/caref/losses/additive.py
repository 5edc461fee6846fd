"""The paper's additive predecessor of SCED: an entropy term plus a separate sparsity term."""

from dataclasses import dataclass

from torch import Tensor

from caref.losses.cross_entropy import cross_entropy_per_position
from caref.losses.entropy import entropy_per_position
from caref.losses.objective import Objective, Term
from caref.losses.reduction import check_at_least


@dataclass(eq=False, kw_only=True)
class AdditiveObjective(Objective):
    """The paper's additive predecessor: ``CE + lambda_ent * H + lambda_sparse * S``.

    ``H = -sum_v P log P`` is the entropy in nats, ``S = 1 - sum_v P^2`` the Gini impurity, within
    [0, 1 - 1/V]. Both are 0 at a one-hot prediction and largest at the uniform one: the weights are
    added, so that both sharpen the model, unlike those of `entropy` and `kl`. Both obey `span`.

    The paper names the two weights but defines neither term; S and both signs are a reading of it.

    Args:
        lambda_ent: Weight of the entropy, which is added, at least 0.
        lambda_sparse: Weight of the Gini impurity, which is added, at least 0.
        span: Where penalties apply: "all" target positions, the "answer" or the "explanation".
        separator_ids: Token ids that end the answer, needed for a span other than "all".
        shift: Compare logits at one position with the label at the next, for causal models.
        ignore_index: The label of padding and prompt positions.
        reduction: "mean" over kept positions, "sum" or "none".
        fused: "auto", "off" for the formula as it stands, or the kernel to use; see `Objective`.

    Source:
        CAREF, appendix, where the weights are 0.1 and 0.05.
    """

    lambda_ent: float = 0.1
    lambda_sparse: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("lambda_ent", self.lambda_ent, 0)
        check_at_least("lambda_sparse", self.lambda_sparse, 0)

    def terms(self, logits: Tensor, labels: Tensor) -> list[Term]:
        """Cross-entropy, entropy and Gini impurity."""
        log_probs = logits.log_softmax(-1)
        return [
            Term("ce", cross_entropy_per_position(log_probs, labels), everywhere=True),
            Term("entropy", entropy_per_position(log_probs), self.lambda_ent),
            Term("gini", gini_per_position(log_probs), self.lambda_sparse),
        ]


def gini_per_position(log_probs: Tensor) -> Tensor:
    """``1 - sum_v P^2``, shape ``(...)``, from log-probabilities ``(..., vocab)``."""
    return 1 - log_probs.exp().square().sum(-1)
