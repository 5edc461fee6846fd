"""Whether explanations merely restate the label or the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from caref.generation.prediction import Prediction
from caref.metrics.result import (
    NO_PREDICTIONS,
    Direction,
    MetricResult,
    given,
    interval_of_mean,
    mean_or_none,
)
from caref.metrics.words import STOP_WORDS_SHA256, WORDS, content_words, ngrams, words


class Comparison(NamedTuple):
    """One explanation beside its label and its input: shares in [0, 1], 1 or 0 but for the last.

    Attributes:
        restatement: Whether every content word is in the label or in the input; None without an input.
        label_restated: Whether every content word is in the label.
        label_mention: Whether the label's words stand in the explanation, side by side.
        copied_share: The share of distinct content words that are in the label or in the input; None
            without an input or without content words.
    """

    restatement: float | None
    label_restated: float
    label_mention: float
    copied_share: float | None


class Restatement:
    """Label-leak rate: how many explanations consist of words of the label and the input alone.

    An explanation restates if each of its content words occurs in the label or in the input. Content
    words are those outside `words.STOP_WORDS`: function words, negations and words of frames such as "the
    answer is". They are compared as they are, in lower case: another inflection is a new word; another
    order or a negation adds none. An explanation without content words restates. The label is the
    predicted one. The input is the whole text that the model was given, with all choices and the
    prompt's own words. Predictions without an explanation (broken, blank, ``UNK``) are left out; from
    the values that need the input, so are those without one.

    Words are not the whole matter: "a man is not a woman" may be the reason, of a man in the premise and a
    woman in the hypothesis. So every value is also given for the gold explanations, the first reference of
    each example with the gold label: read a rate by its distance from that one.

    Values, in percent:
        ``restatement``; ``label_restated``, with content words of the label alone ("the answer is X because
        it is X"); ``label_mention``, with the label's words side by side; ``copied_share``, the mean share of
        an explanation's distinct content words that are in the label or in the input, over those that
        have content words; the same with ``_gold`` added, of the gold explanations. Counts: ``n``;
        ``n_label_mention``, the explanations; ``n_restatement``, those of them with an input; both with
        ``_gold``. Per example: the first four as in `Comparison`, None where undefined. The fingerprint
        holds what a word is and the hash of the stop words.
    """

    name = "restatement"
    direction: Direction | None = "lower"
    range = (0.0, 100.0)
    unit = "percent"
    source = (
        "caref's own, by words; leakage: Hase et al., 2020, arXiv:2010.04119; explanations by template: "
        "Camburu et al., 2018, arXiv:1812.01193"
    )

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        """The restating explanations among `predictions`."""
        own = [compare(p.explanation, p.label, p.input) if p.is_explained else None for p in predictions]
        gold = [_gold(prediction) for prediction in predictions]
        sides = (
            _averaged(
                own, predictions, "", "no prediction has an explanation" if predictions else NO_PREDICTIONS
            ),
            _averaged(
                gold, predictions, "_gold", "no prediction has a reference" if predictions else NO_PREDICTIONS
            ),
        )
        return MetricResult(
            values={**sides[0].values, **sides[1].values, "n": len(predictions)},
            per_example={name: _column(own, name) for name in Comparison._fields},
            fingerprint={"words": WORDS, "stop_words_sha256": STOP_WORDS_SHA256},
            notes={**sides[0].notes, **sides[1].notes},
            intervals={**sides[0].intervals, **sides[1].intervals},
        )


def compare(explanation: str, label: str, text: str) -> Comparison:
    """One explanation beside its label and the input, blank where there is none.

    Example:
        >>> compare("A bank isn't a boat.", "bank", "Where is money kept? bank, boat")
        Comparison(restatement=1.0, label_restated=0.0, label_mention=1.0, copied_share=1.0)
        >>> compare("The answer is bank because it is a bank.", "bank", "")
        Comparison(restatement=None, label_restated=1.0, label_mention=1.0, copied_share=None)
    """
    content, label_words = content_words(explanation), words(label)
    known = content & {*label_words, *words(text)} if text.strip() else None
    mentioned = tuple(label_words) in ngrams(words(explanation), len(label_words))
    return Comparison(
        restatement=None if known is None else float(known == content),
        label_restated=float(content <= set(label_words)),
        label_mention=float(mentioned),
        copied_share=None if known is None or not content else len(known) / len(content),
    )


def _gold(prediction: Prediction) -> Comparison | None:
    first = next(iter(prediction.gold_explanations), "")
    return compare(first, prediction.gold_label, prediction.input) if first.strip() else None


def _column(compared: Sequence[Comparison | None], name: str) -> list[float | None]:
    return [None if each is None else getattr(each, name) for each in compared]


def _averaged(
    compared: Sequence[Comparison | None], predictions: Sequence[Prediction], suffix: str, nothing: str
) -> MetricResult:
    """Means, intervals and counts under names with that suffix; `nothing`: why there is no explanation."""
    percent = {
        name: [None if each is None else 100 * each for each in _column(compared, name)]
        for name in Comparison._fields
    }
    known = {name: [each for each in column if each is not None] for name, column in percent.items()}
    if known["label_mention"]:
        without_input = "no explanation stands beside an input"
        nothing = without_input if not known["restatement"] else "no explanation has a content word"
    counts = {f"n_{name}{suffix}": len(known[name]) for name in ("label_mention", "restatement")}
    intervals = {name + suffix: interval_of_mean(column, predictions) for name, column in percent.items()}
    return MetricResult(
        values={**{name + suffix: mean_or_none(known[name]) for name in known}, **counts},
        notes={name + suffix: nothing for name in known if not known[name]},
        intervals=given(**intervals),
    )
