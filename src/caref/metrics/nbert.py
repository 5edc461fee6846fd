"""nBERT: BERTScore of the explanations, counted only where the answer is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from caref.errors import CarefError
from caref.generation.prediction import Prediction
from caref.metrics.bertscore.baselines import stored_baseline
from caref.metrics.bertscore.cache import ScoreCache
from caref.metrics.result import (
    NO_PREDICTIONS,
    Direction,
    MetricResult,
    given,
    interval_of_mean,
    mean_or_none,
    undefined,
)
from caref.statistics.bootstrap import Interval

if TYPE_CHECKING:
    from caref.metrics.bertscore import BertScorer

_VALUES = ("nbert", "f1_given_right", "f1_given_right_rescaled", "f1_all")
_NONE_RIGHT = "no answer is right"
_NO_BASELINE = "no baseline is stored for this encoder and layer; pass f1_baseline"


class NBert:
    """``nbert = mean(c * b)``: `c` is 1 for a right answer, `b` the explanation's BERTScore.

    ``b = 100 * max over references of F1``, both sides in lower case, neither idf weights nor
    rescaling. An empty reference scores 0 and stays among the references; a broken generation's
    explanation, ``UNK``, is scored as it is. Hence ``nbert = accuracy / 100 * f1_given_right``,
    and most differences in nBERT are differences in accuracy: read the factors.

    Unrelated sentences score far above 0, so ``f1_given_right_rescaled`` is given beside it: the mean
    over right answers of ``100 * (F1 - z) / (1 - z)``, `z` the F1 of unrelated explanations. It is a
    straight line through ``f1_given_right``: easier to read, but it changes neither a ranking nor the
    significance of a difference, and it depends on the pairs that `z` was measured on.

    Values: ``nbert``, ``f1_given_right`` (the mean of `b` over right answers, None without any),
    ``f1_given_right_rescaled`` (None also without a `z`), ``f1_all`` (the mean of `b` over all) and the
    counts ``n`` and ``n_right``. Per example: ``nbert`` and ``bertscore_f1``, also in percent. The
    fingerprint is that of `BertScorer` and ``f1_baseline``: `z` and whether it was ``"given"`` or
    ``"stored"``.

    Args:
        encoder: A directory, a hub id or "offline" (the encoder packaged in the extra of that name); only the
            default compares with published numbers.
        layer: The hidden layer compared; None takes the published one, the last for an unknown encoder.
        f1_baseline: F1 of unrelated explanations, a fraction below 1, that is 0 once rescaled; None takes the
            stored estimate, where the encoder has one.
        device: As in `BertScorer`.
        cache: Where scores are kept on disk; None keeps none. It changes nothing but rounding.

    Raises:
        CarefError: If `f1_baseline` is not within [-1, 1).
    """

    name = "nbert"
    direction: Direction | None = "higher"
    range = (-100.0, 100.0)  # that of a cosine; real encoders stay well above 0
    unit = "percent"
    source = "FEB: Marasovic et al., 2022, arXiv:2111.08284; BERTScore: Zhang et al., 2020, arXiv:1904.09675"

    def __init__(
        self,
        encoder: str = "roberta-large",
        layer: int | None = None,
        f1_baseline: float | None = None,
        *,
        device: str | None = None,
        cache: ScoreCache | None = None,
    ) -> None:
        if f1_baseline is not None and not -1 <= f1_baseline < 1:
            raise CarefError(f"f1_baseline must be a fraction of at least -1 and below 1, got {f1_baseline}")
        self.encoder = encoder
        self.layer = layer
        self.f1_baseline = f1_baseline
        self.device = device
        self.cache = cache
        self._known: dict[tuple[str, str], float] = {}

    @cached_property
    def scorer(self) -> BertScorer:
        """The scorer, loaded on its first use."""
        from caref.metrics.bertscore import BertScorer  # imports torch

        return BertScorer(self.encoder, self.layer, device=self.device, lowercase=True, cache=self.cache)

    def prepare(
        self,
        sets: Sequence[Sequence[Prediction]],
        *,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Score many sets of predictions in one pass, so that `compute` only looks up.

        Every distinct text of all sets is embedded once, and every distinct pair compared once. The F1 of
        pairs stay in memory as long as this object. `compute` of these sets then gives what it would
        have given, but for rounding: at most 1e-4 percent.

        Args:
            sets: Each as `compute` takes it.
            on_progress: As in `BertScorer.f1`.
        """
        predictions = [prediction for each in sets for prediction in each]
        if predictions:
            texts = _texts(predictions)
            self._known |= self.scorer.pair_scores(*texts, known=self._known, on_progress=on_progress)

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The nBERT of `predictions`; without any, no encoder is loaded."""
        if not predictions:
            return undefined(NO_PREDICTIONS, *_VALUES, n=0, n_right=0)
        f1 = [100 * score for score in self.scorer.f1(*_texts(predictions), known=self._known)]
        counted = [score if each.correct else None for score, each in zip(f1, predictions, strict=True)]
        right = [score for score in counted if score is not None]
        normalised = [score or 0.0 for score in counted]
        given_right = mean_or_none(right)
        fingerprint = self.scorer.fingerprint()
        baseline = self._baseline(fingerprint)
        rescaled = _rescaled(given_right, baseline["value"])
        interval = interval_of_mean(counted, predictions)
        notes = {} if given_right is not None else {"f1_given_right": _NONE_RIGHT}
        if rescaled is None:
            notes["f1_given_right_rescaled"] = _NONE_RIGHT if given_right is None else _NO_BASELINE
        return MetricResult(
            values={
                "nbert": mean_or_none(normalised),
                "f1_given_right": given_right,
                "f1_given_right_rescaled": rescaled,
                "f1_all": mean_or_none(f1),
                "n": len(f1),
                "n_right": len(right),
            },
            per_example={"nbert": normalised, "bertscore_f1": f1},
            fingerprint={**fingerprint, "f1_baseline": baseline},
            notes=notes,
            intervals=given(
                nbert=interval_of_mean(normalised, predictions),
                f1_given_right=interval,
                f1_given_right_rescaled=_rescaled_interval(interval, baseline["value"]),
                f1_all=interval_of_mean(f1, predictions),
            ),
        )

    def _baseline(self, fingerprint: dict[str, Any]) -> dict[str, Any]:
        """The F1 that is 0 once rescaled, and where it is from; both None where there is none."""
        if self.f1_baseline is not None:
            return {"value": self.f1_baseline, "source": "given"}
        deciding = (fingerprint[name] for name in ("encoder_sha256", "layer", "lowercase"))
        stored = stored_baseline(*deciding)
        return {"value": stored.f1, "source": "stored"} if stored else {"value": None, "source": None}


def _texts(predictions: Sequence[Prediction]) -> tuple[list[str], list[tuple[str, ...]]]:
    explanations = [prediction.explanation for prediction in predictions]
    return explanations, [prediction.gold_explanations for prediction in predictions]


def _rescaled(percent: float | None, baseline: float | None) -> float | None:
    """A mean of F1 in percent, rescaled: the same as the mean of rescaled F1."""
    return None if percent is None or baseline is None else (percent - 100 * baseline) / (1 - baseline)


def _rescaled_interval(interval: Interval | None, baseline: float | None) -> Interval | None:
    low, high = (_rescaled(end, baseline) for end in interval or (None, None))
    return None if low is None or high is None else (low, high)
