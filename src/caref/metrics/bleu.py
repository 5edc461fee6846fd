"""BLEU of the explanations, by sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caref.generation.prediction import Prediction
from caref.metrics.result import NO_PREDICTIONS, Direction, MetricResult, given, undefined
from caref.statistics.bootstrap import Interval, bootstrap_interval

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU


class Bleu:
    """Corpus BLEU of all explanations against their references, with sacrebleu's defaults.

    Counts of n-grams up to 4 are summed over the predictions before precisions are taken, so this is no
    mean over examples. The brevity penalty compares lengths with the nearest reference's. Blank
    references are left out: their length 0 would spare short explanations the penalty. An explanation
    without references matches nothing. All predictions count, right or wrong; a broken generation's
    explanation, ``UNK``, is scored as it is.

    Values: ``bleu`` and the count ``n``. Per example: ``sentence_bleu``, each explanation's own BLEU in
    percent, by the orders of n-gram that it is long enough for (effective order); its mean is not ``bleu``.
    The interval draws examples and sums their counts anew. The fingerprint holds sacrebleu's
    signature, which includes its version.

    Args:
        bleu_lowercase: Whether BLEU ignores case; by sacrebleu's default it does not, and a model that
            writes lower case alone loses every capital of its references.
    """

    name = "bleu"
    direction: Direction | None = "higher"
    range = (0.0, 100.0)
    unit = "percent"
    source = "BLEU: Papineni et al., 2002, P02-1040; sacrebleu: Post, 2018, arXiv:1804.08771"

    def __init__(self, bleu_lowercase: bool = False) -> None:
        self.bleu_lowercase = bleu_lowercase

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The BLEU of `predictions`."""
        if not predictions:
            return undefined(NO_PREDICTIONS, "bleu", n=0)
        texts = [each.explanation for each in predictions]
        references = [_references(each) for each in predictions]
        corpus, sentence = self._scorer(effective_order=False), self._scorer(effective_order=True)
        score = corpus.corpus_score(texts, _streams(references)).score
        sentences = [sentence.sentence_score(text, own) for text, own in zip(texts, references, strict=True)]
        counts = [[each.sys_len, each.ref_len, *each.counts, *each.totals] for each in sentences]
        return MetricResult(
            values={"bleu": _percent(score), "n": len(predictions)},
            per_example={"sentence_bleu": [_percent(each.score) for each in sentences]},
            fingerprint={
                "signature": str(corpus.get_signature()),
                "sentence_bleu": "the same, by effective order",
            },
            intervals=given(bleu=_interval(counts, [each.id for each in predictions])),
        )

    def _scorer(self, *, effective_order: bool) -> BLEU:
        from sacrebleu.metrics import BLEU

        # `force` silences a warning about texts that end in " .", as some tokenizers write them.
        return BLEU(lowercase=self.bleu_lowercase, effective_order=effective_order, force=True)


def _references(prediction: Prediction) -> tuple[str, ...]:
    """Those that are not blank; one blank text where there is none."""
    return tuple(text for text in prediction.gold_explanations if text.strip()) or ("",)


def _streams(references: Sequence[tuple[str, ...]]) -> list[list[str | None]]:
    """The first reference of every prediction, then the second, as sacrebleu takes them; None: no more."""
    most = max(len(own) for own in references)
    return [[own[place] if place < len(own) else None for own in references] for place in range(most)]


def _interval(counts: Sequence[list[int]], ids: Sequence[str]) -> Interval | None:
    """Of corpus BLEU.

    Args:
        counts: For each example the lengths of explanation and nearest reference, then its matching n-grams
            by order, then all of its n-grams by order.
        ids: Of the examples.
    """
    from sacrebleu.metrics import BLEU

    rows = np.array(counts, dtype=np.int64)
    orders = (rows.shape[1] - 2) // 2

    def bleu(places: NDArray[np.intp]) -> float:
        sums: list[Any] = rows[places].sum(axis=0).tolist()
        correct, total = sums[2 : 2 + orders], sums[2 + orders :]
        score = BLEU.compute_bleu(correct, total, sums[0], sums[1], smooth_method="exp")
        return _percent(score.score)

    return bootstrap_interval(bleu, ids)


def _percent(score: float) -> float:
    return min(score, 100.0)  # rounding may leave a little more
