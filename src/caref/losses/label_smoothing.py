"""Label smoothing: a share of the target is spread over the whole vocabulary."""

from dataclasses import dataclass

from torch import Tensor

from caref.losses.cross_entropy import cross_entropy_per_position
from caref.losses.objective import Objective, Term


@dataclass(eq=False, kw_only=True)
class LabelSmoothingObjective(Objective):
    """Cross-entropy to a smoothed target: ``(1 - smoothing) CE + smoothing * mean_v(-log P)``.

    In nats. It is written as ``CE + smoothing * (mean_v(-log P) - CE)``, the same number: CE stays on
    every position, and the smoothing, as a penalty, obeys `span`. Outside the span the target is the
    label alone. The term may be negative: it is how much more the uniform target costs than the label.

    Args:
        smoothing: Share of the target that is spread over all tokens, within [0, 1).
        span: Where penalties apply: "all" target positions, the "answer" or the "explanation".
        separator_ids: Token ids that end the answer, needed for a span other than "all".
        shift: Compare logits at one position with the label at the next, for causal models.
        ignore_index: The label of padding and prompt positions.
        reduction: "mean" over kept positions, "sum" or "none".
        fused: "auto", "off" for the formula as it stands, or the kernel to use; see `Objective`.

    Source:
        Szegedy et al., 2016, arXiv:1512.00567, section 7, with smoothing 0.1.
    """

    smoothing: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.smoothing < 1:
            raise ValueError(f"smoothing must lie in [0, 1), got {self.smoothing}")

    def terms(self, logits: Tensor, labels: Tensor) -> list[Term]:
        """Cross-entropy and what a uniform target costs beyond it."""
        log_probs = logits.log_softmax(-1)
        ce = cross_entropy_per_position(log_probs, labels)
        return [
            Term("ce", ce, everywhere=True),
            Term("smoothing", -log_probs.mean(-1) - ce, self.smoothing),
        ]
