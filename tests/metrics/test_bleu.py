"""BLEU: sacrebleu itself, another implementation, and the interval."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caref.generation.prediction import Prediction
from caref.metrics.bleu import Bleu

IDS = itertools.count()

WORDS = ["a", "bank", "is", "next", "to", "the", "river", "."]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=10).map(" ".join)
CASES = st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=6)


def predicted(explanation: str, *references: str) -> Prediction:
    return Prediction(
        id=f"{next(IDS):06}", label="a", explanation=explanation, gold_label="a", gold_explanations=references
    )


def bleu(*predictions: Prediction, lowercase: bool = False) -> float | None:
    return Bleu(bleu_lowercase=lowercase).compute(predictions).values["bleu"]


def test_a_value_by_hand() -> None:
    # 5 words of 6: precisions 5/5, 4/4, 3/3, 2/2; brevity penalty exp(1 - 6/5).
    pair = predicted("a bank is next to", "a bank is next to it")
    assert bleu(pair) == pytest.approx(100 * math.exp(1 - 6 / 5))


@settings(max_examples=20, deadline=None)
@given(CASES)
def test_it_is_sacrebleus_with_as_many_references_as_there_are(cases: list[tuple[str, list[str]]]) -> None:
    from sacrebleu.metrics import BLEU

    result = Bleu().compute([predicted(text, *own) for text, own in cases])
    most = max(len(own) for _, own in cases)
    streams = [[own[k] if k < len(own) else None for _, own in cases] for k in range(most)]
    scorer = BLEU()
    assert result.values["bleu"] == pytest.approx(scorer.corpus_score([t for t, _ in cases], streams).score)
    assert result.fingerprint["signature"] == str(scorer.get_signature())
    sentences = [BLEU(effective_order=True).sentence_score(text, own).score for text, own in cases]
    assert result.per_example["sentence_bleu"] == pytest.approx(sentences)


@settings(max_examples=20, deadline=None)
@given(CASES)
def test_it_agrees_with_torchmetrics_where_nothing_is_smoothed(cases: list[tuple[str, list[str]]]) -> None:
    from torchmetrics.functional.text import sacre_bleu_score

    theirs = float(sacre_bleu_score([text for text, _ in cases], [own for _, own in cases]))
    if theirs > 0:  # 0 there: an order without a match, which sacrebleu smoothes
        assert bleu(*(predicted(text, *own) for text, own in cases)) == pytest.approx(100 * theirs, abs=1e-3)


@settings(max_examples=20, deadline=None)
@given(CASES)
def test_range_and_permutation(cases: list[tuple[str, list[str]]]) -> None:
    predictions = [predicted(text, *own) for text, own in cases]
    turned = [
        each.model_copy(update={"gold_explanations": each.gold_explanations[::-1]})
        for each in predictions[::-1]
    ]
    first, second = Bleu().compute(predictions), Bleu().compute(turned)
    assert first.values["bleu"] is not None
    assert 0 <= first.values["bleu"] <= 100
    assert second.values == first.values
    assert second.intervals == first.intervals
    assert second.per_example["sentence_bleu"] == first.per_example["sentence_bleu"][::-1]


def test_an_explanation_that_is_a_reference_gives_100() -> None:
    text = "a bank is next to the river"
    assert bleu(predicted(text, "water", text), predicted("the river is next", "the river is next")) == 100


def test_case_counts_unless_told_otherwise() -> None:
    pair = predicted("a bank is next to it", "A BANK is next to it")
    assert bleu(pair, lowercase=True) == pytest.approx(100)
    assert bleu(pair) < 100
    signatures = [Bleu(bleu_lowercase=lower).compute([pair]).fingerprint["signature"] for lower in (0, 1)]
    assert "case:mixed" in signatures[0]
    assert "case:lc" in signatures[1]


def test_blank_references_are_left_out() -> None:
    short, reference = "a bank is next", "a bank is next to the river, which is next to it"
    assert bleu(predicted(short, reference, "", " ")) == bleu(predicted(short, reference)) < 50


@pytest.mark.parametrize(
    ("explanation", "references"),
    [("", ("a bank",)), ("a bank", ()), ("a bank", ("",)), ("", ()), ("UNK", ("a",))],
)
def test_what_cannot_match_gives_0(explanation: str, references: tuple[str, ...]) -> None:
    result = Bleu().compute([predicted(explanation, *references)])
    assert result.values["bleu"] == 0
    assert result.per_example["sentence_bleu"] == [0]


@settings(max_examples=5, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), min_size=2, max_size=4))
def test_the_interval_is_that_of_sacrebleu_on_drawn_examples(cases: list[tuple[str, list[str]]]) -> None:
    """The same draws, each scored from its texts."""
    import numpy as np
    from sacrebleu.metrics import BLEU

    from caref.statistics.bootstrap import bootstrap_interval

    def scored(places: np.ndarray) -> float:
        drawn = [cases[place] for place in places]
        streams = [[own[k] if k < len(own) else None for _, own in drawn] for k in range(3)]
        return min(100, BLEU().corpus_score([text for text, _ in drawn], streams).score)

    whole = Bleu().compute([predicted(text, *own) for text, own in cases]).intervals["bleu"]
    assert whole == pytest.approx(bootstrap_interval(scored, len(cases)))


def test_one_prediction_has_no_interval() -> None:
    assert Bleu().compute([predicted("a bank", "a bank")]).intervals == {}
