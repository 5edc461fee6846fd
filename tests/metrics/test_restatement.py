"""What restates: by hand, at the edges, and by the properties that the definition has."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caref.generation.prediction import Prediction
from caref.metrics.restatement import Comparison, Restatement, compare
from caref.metrics.words import STOP_WORDS

IDS = itertools.count()

MakePrediction = Callable[..., Prediction]

QUESTION = "explain where is money kept? (A) river bank (B) boat"
CONTENT = ["bank", "river", "boat", "money", "safe"]
TEXTS = st.lists(st.sampled_from([*CONTENT, "a", "not", "is"]), max_size=6).map(" ".join)


@pytest.mark.parametrize(
    ("explanation", "label", "expected"),
    [
        ("Money is kept in a boat.", "boat", Comparison(1, 0, 1, 1)),
        ("Money isn't kept in a boat", "river bank", Comparison(1, 0, 0, 1)),  # a negation adds nothing
        ("the answer is River Bank because it is a river bank", "river bank", Comparison(1, 1, 1, 1)),
        ("a bank of the river", "river bank", Comparison(1, 1, 0, 1)),  # not side by side
        ("money is safe in a river bank", "river bank", Comparison(0, 0, 1, 0.75)),
        ("boats are safe", "boat", Comparison(0, 0, 0, 0)),  # an inflection is another word
        ("safe safe money", "boat", Comparison(0, 0, 0, 0.5)),  # distinct words
        ("it is not", "boat", Comparison(1, 1, 0, None)),
        ("...", "boat", Comparison(1, 1, 0, None)),
        ("a boat", "?", Comparison(1, 0, 0, 1)),  # a label without words
        ("choice10 is safe", "choice1", Comparison(0, 0, 0, 0)),  # whole words
        ("Choice1 it is", "choice1", Comparison(1, 1, 1, 1)),
        ("an explanation", "boat", Comparison(0, 0, 0, 0)),
        ("explain the boat", "boat", Comparison(1, 0, 1, 1)),  # the prompt's words are the input's
    ],
)
def test_an_explanation_beside_label_and_input(explanation: str, label: str, expected: Comparison) -> None:
    assert compare(explanation, label, QUESTION) == pytest.approx(expected)


def test_without_an_input_only_the_label_is_compared() -> None:
    assert compare("a boat", "boat", " ") == Comparison(None, 1, 1, None)


def test_predictions_are_compared_with_their_label_and_gold_with_theirs(
    make_prediction: MakePrediction,
) -> None:
    common = {"input": QUESTION, "gold_label": "river bank"}
    result = Restatement().compute(
        [
            make_prediction(
                id="1", **common, label="boat", explanation="a boat", gold_explanations=("river bank", "x")
            ),
            make_prediction(
                id="2", **common, label="boat", explanation="safe", gold_explanations=("money is safe",)
            ),
            make_prediction(**common, label="boat", explanation="UNK", gold_explanations=("",)),
            make_prediction(**common, label="boat", explanation="boat", broken=True, gold_explanations=()),
            make_prediction(
                gold_label="x", label="boat", input="", explanation="boats", gold_explanations=("x",)
            ),
        ]
    )
    assert result.values == pytest.approx(
        {
            "restatement": 50,
            "label_restated": 100 / 3,
            "label_mention": 100 / 3,
            "copied_share": 50,
            "n_label_mention": 3,
            "n_restatement": 2,
            "restatement_gold": 50,
            "label_restated_gold": 200 / 3,
            "label_mention_gold": 200 / 3,
            "copied_share_gold": 75,
            "n_label_mention_gold": 3,
            "n_restatement_gold": 2,
            "n": 5,
        }
    )
    assert result.per_example == {
        "restatement": [1, 0, None, None, None],
        "label_restated": [1, 0, None, None, 0],
        "label_mention": [1, 0, None, None, 0],
        "copied_share": [1, 0, None, None, None],
    }
    assert result.notes == {}
    assert result.intervals["restatement"] == (0, 100)


def test_what_is_undefined_says_why() -> None:
    def notes(explanation: str, text: str, *references: str) -> dict[str, str]:
        prediction = Prediction(
            id=f"{next(IDS):06}",
            label="a",
            input=text,
            explanation=explanation,
            gold_label="a",
            gold_explanations=references,
        )
        return dict(Restatement().compute([prediction]).notes)

    assert notes("a boat", "", "a bank") == dict.fromkeys(
        ("restatement", "copied_share", "restatement_gold", "copied_share_gold"),
        "no explanation stands beside an input",
    )
    assert notes("it is", "boat", "a bank") == {"copied_share": "no explanation has a content word"}
    blank = notes("UNK", "boat")
    assert blank["label_mention"] == blank["restatement"] == "no prediction has an explanation"
    assert blank["label_mention_gold"] == blank["restatement_gold"] == "no prediction has a reference"


@settings(deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_values_fit_each_other(explanation: str, label: str, text: str) -> None:
    compared = compare(explanation, label, text)
    if not text.strip():
        assert compared.restatement is compared.copied_share is None
        return
    assert compared.restatement is not None
    assert compared.restatement >= compared.label_restated
    if compared.copied_share is not None:
        assert 0 <= compared.copied_share <= 1
        assert (compared.copied_share == 1) == (compared.restatement == 1)
    assert compare(" ".join(reversed(explanation.split())), label, text)[:2] == compared[:2]
    assert compare(explanation, label, f"{text} {explanation}").restatement == 1
    assert compare(f"{explanation} unheard", label, text).restatement == 0


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_a_label_is_mentioned_as_a_run_of_words(explanation: str, label: str) -> None:
    mentioned = bool(label) and f" {label} " in f" {explanation} "
    assert compare(explanation, label, "").label_mention == mentioned


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=6))
def test_range_and_permutation(cases: list[tuple[str, str, str]]) -> None:
    predictions = [
        Prediction(
            id=f"{next(IDS):06}", label=a, input=b, explanation=c, gold_label="boat", gold_explanations=(b,)
        )
        for a, b, c in cases
    ]
    first, second = Restatement().compute(predictions), Restatement().compute(predictions[::-1])
    assert second.values == pytest.approx(first.values)
    assert second.intervals == first.intervals
    shares = [value for name, value in first.values.items() if not name.startswith("n")]
    assert all(value is None or 0 <= value <= 100 for value in shares)
    assert first.values["restatement_gold"] in (None, 100)  # the reference is the input


def test_the_fingerprint_names_the_stop_words(make_prediction: MakePrediction) -> None:
    import hashlib

    known = hashlib.sha256(" ".join(sorted(STOP_WORDS)).encode()).hexdigest()
    assert Restatement().compute([make_prediction()]).fingerprint["stop_words_sha256"] == known
