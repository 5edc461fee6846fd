"""ROUGE-L: values by hand, another implementation, and what may not change them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caref.generation.prediction import Prediction
from caref.metrics.rouge_l import RougeL

IDS = itertools.count()

MakePrediction = Callable[..., Prediction]

WORDS = ["a", "bank", "is", "next", "to", "the", "river", "Banks", "."]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


def predicted(explanation: str, *references: str, label: str = "a") -> Prediction:
    return Prediction(
        id=f"{next(IDS):06}",
        label=label,
        explanation=explanation,
        gold_label="a",
        gold_explanations=references,
    )


def scores(*predictions: Prediction, stemmer: bool = False) -> list[float | None]:
    return list(RougeL(rouge_stemmer=stemmer).compute(predictions).per_example["rouge_l"])


def test_a_value_by_hand() -> None:
    # The longest common subsequence is "a bank the": 3 of 4 words, 3 of 6.
    (score,) = scores(predicted("a bank, the sea", "A bank is near the river."))
    assert score == pytest.approx(100 * 2 * (3 / 4) * (3 / 6) / (3 / 4 + 3 / 6))


def test_the_order_of_words_counts() -> None:
    assert scores(predicted("bank a", "a bank")) == [pytest.approx(50)]


def test_the_best_reference_counts() -> None:
    assert scores(predicted("a bank", "a river", "the sea", "A bank!", "")) == [pytest.approx(100)]


@pytest.mark.parametrize(
    ("explanation", "references"),
    [
        ("", ("a bank",)),
        (" ", ("a bank",)),
        ("a bank", ("",)),
        ("a bank", ()),
        ("...", ("...",)),
        ("", ("",)),
    ],
)
def test_a_text_without_words_scores_0(explanation: str, references: tuple[str, ...]) -> None:
    assert scores(predicted(explanation, *references)) == [0]


def test_stems_are_compared_on_request() -> None:
    pair = predicted("rivers flooded", "river flooding")
    assert scores(pair) == [0]
    assert scores(pair, stemmer=True) == [pytest.approx(100)]
    fingerprints = [RougeL(rouge_stemmer=stemmer).compute([pair]).fingerprint for stemmer in (False, True)]
    assert [each["rouge_stemmer"] for each in fingerprints] == [False, True]
    assert fingerprints[0]["versions"].keys() == {"rouge-score"}


def test_all_examples_count_and_those_given_right_are_told_apart() -> None:
    result = RougeL().compute(
        [
            predicted("a bank", "a bank"),
            predicted("a bank", "a bank", label="b"),
            predicted("UNK", "a bank", label="b because"),
            predicted("bank", "a river", label=" A"),
        ]
    )
    assert result.values == pytest.approx(
        {"rouge_l": 50, "rouge_l_given_right": 50, "n": 4, "n_rouge_l_given_right": 2}
    )
    low, high = result.intervals["rouge_l"]
    assert 0 <= low < 50 < high <= 100


def test_given_right_is_undefined_without_a_right_answer() -> None:
    result = RougeL().compute([predicted("a bank", "a bank", label="b")])
    assert result.values["rouge_l_given_right"] is None
    assert result.notes == {"rouge_l_given_right": "no answer is right"}
    assert result.intervals == {}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=5))
def test_it_agrees_with_torchmetrics(cases: list[tuple[str, list[str]]]) -> None:
    """Which tokenizes by the same rule and takes the best reference, but for blank texts, where it warns."""
    from torchmetrics.functional.text import rouge_score

    cases = [(text, [each for each in own if each.strip(" .")]) for text, own in cases if text.strip(" .")]
    cases = [(text, own) for text, own in cases if own]
    if cases:
        texts, references = [text for text, _ in cases], [own for _, own in cases]
        theirs = rouge_score(texts, references, accumulate="best", rouge_keys="rougeL")["rougeL_fmeasure"]
        ours = RougeL().compute([predicted(text, *own) for text, own in cases]).values["rouge_l"]
        assert ours == pytest.approx(100 * float(theirs), abs=1e-4)


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_range_identity_symmetry_and_permutation(text: str, references: list[str]) -> None:
    (score,) = scores(predicted(text, *references))
    assert score is not None
    assert 0 <= score <= 100
    assert scores(predicted(text, *reversed(references))) == [score]
    assert scores(predicted(text, references[0])) == pytest.approx(scores(predicted(references[0], text)))
    if text.strip(" ."):
        assert scores(predicted(text, *references, text)) == [pytest.approx(100)]


def test_the_interval_does_not_depend_on_the_order_of_predictions() -> None:
    predictions = [predicted("a " * length, "a a a") for length in range(9)]
    first, second = RougeL().compute(predictions), RougeL().compute(predictions[::-1])
    assert first.intervals == second.intervals


def test_equal_pairs_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    compared: list[tuple[str, str]] = []
    score = RougeScorer.score

    def counting(self: RougeScorer, target: str, prediction: str) -> object:
        compared.append((prediction, target))
        return score(self, target, prediction)

    monkeypatch.setattr(RougeScorer, "score", counting)
    RougeL().compute([predicted("a", "b", "c"), predicted("a", "c", "b"), predicted("b", "c")])
    assert sorted(compared) == [("a", "b"), ("a", "c"), ("b", "c")]
