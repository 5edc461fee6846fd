"""What every automatic metric says of every rated explanation: its per-example numbers, as columns.

Which of a metric's numbers are of an explanation is found out, not listed: of some predictions the
explanation, the references or the gold label is changed, and it is seen which numbers change with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caref.generation.prediction import Prediction
from caref.human.ratings import RatedQuestion
from caref.metrics import Metric
from caref.metrics.result import ScoresTogether

Numbers = NDArray[np.float64]
"""One number per question; NaN where the metric has none."""

PROBED = 48
"""How many predictions are changed to find out what a number depends on."""

UNRELATED = "zebras graze quietly"
"""A reference that has nothing to do with any explanation."""

NOT_THE_EXPLANATION = "does not depend on the explanation"
ABOUT_THE_ANSWER = "depends on whether the answer is right, which it is here throughout"
CONSTANT = "the same for every explanation"
UNDEFINED = "undefined for every explanation"
NO_COLUMN = "says nothing of single explanations"


@dataclass(frozen=True)
class Column:
    """One per-example number of a metric, of all questions in their order.

    Attributes:
        name: Of the number.
        metric: The metric that gives it.
        needs_reference: Whether it compares with the references.
        generated: Of the generated explanation; its reference is the gold one that was shown.
        generated_elsewhere: The same; its references are the others, and NaN where there are none and
            they are needed.
        gold_elsewhere: Of the gold explanation, likewise.
        computed_by: The metric's fingerprint.
    """

    name: str
    metric: str
    needs_reference: bool
    generated: Numbers
    generated_elsewhere: Numbers
    gold_elsewhere: Numbers
    computed_by: Mapping[str, object]


def columns(
    questions: Sequence[RatedQuestion],
    others: Sequence[Sequence[str]],
    metrics: Iterable[Metric],
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Column], dict[str, str]]:
    """The columns of `metrics` over `questions`, and why other numbers are none.

    Args:
        questions: The rated questions.
        others: For each its references other than the gold explanation that was shown; may be empty.
        metrics: What to compute.
        on_progress: Told how much of how much of a metric's slow work is done.
    """
    shown = [_prediction(each, generated=True, references=()) for each in questions]
    pairs = list(zip(questions, others, strict=True))
    generated, gold = (
        [_prediction(each, generated=side, references=own) for each, own in pairs] for side in (True, False)
    )
    without_other = np.array([not own for own in others], dtype=bool)
    found: list[Column] = []
    left_out: dict[str, str] = {}
    for metric in metrics:
        kept, needing, reasons = _probed(metric, shown)
        left_out |= reasons
        if not kept:
            continue
        if isinstance(metric, ScoresTogether):
            metric.prepare([shown, generated, gold], on_progress=on_progress)
        computed = metric.compute(shown)
        of_generated, of_gold = metric.compute(generated).per_example, metric.compute(gold).per_example
        for name in kept:
            numbers = _numbers(computed.per_example[name])
            if _distinct(numbers) < 2:
                left_out[name] = UNDEFINED if np.isnan(numbers).all() else CONSTANT
                continue
            absent = without_other & (name in needing)
            found.append(
                Column(
                    name=name,
                    metric=metric.name,
                    needs_reference=name in needing,
                    generated=numbers,
                    generated_elsewhere=np.where(absent, np.nan, _numbers(of_generated[name])),
                    gold_elsewhere=np.where(absent, np.nan, _numbers(of_gold[name])),
                    computed_by=dict(computed.fingerprint),
                )
            )
    return found, left_out


def _prediction(question: RatedQuestion, *, generated: bool, references: Sequence[str]) -> Prediction:
    """One of the two explanations as a prediction whose answer is right."""
    gold = question.gold_explanation.text
    text = question.generated_explanation.text if generated else gold
    return Prediction(
        id=f"{question.task}/{question.system}/{question.id}",
        input="\n".join(question.shown),
        text=f"{question.gold_label} because {text}",
        label=question.gold_label,
        explanation=text,
        gold_label=question.gold_label,
        gold_explanations=tuple(references) or (gold,),
    )


def _probed(metric: Metric, predictions: Sequence[Prediction]) -> tuple[list[str], set[str], dict[str, str]]:
    """The names of a metric's numbers that are of an explanation, which of them need references, and why
    the others are none."""
    some = list(predictions[:: max(1, len(predictions) // PROBED)][:PROBED])
    before = metric.compute(some).per_example
    if not before:
        return [], set(), {metric.name: NO_COLUMN}

    def changing_with(name: str, changed: Sequence[object]) -> set[str]:
        pairs = zip(some, changed, strict=True)
        after = metric.compute([each.model_copy(update={name: value}) for each, value in pairs]).per_example
        return {column for column in before if not _equal(before[column], after[column])}

    about_answer = changing_with("gold_label", [f"not {each.gold_label}" for each in some])
    about_explanation = changing_with("explanation", [each.explanation for each in (*some[1:], *some[:1])])
    needing = changing_with("gold_explanations", [(UNRELATED,)] * len(some))
    reasons = {
        column: NOT_THE_EXPLANATION
        for column, numbers in before.items()
        # What is the same throughout may still differ elsewhere: a rare event.
        if column not in about_explanation and _distinct(_numbers(numbers)) > 1
    }
    reasons |= dict.fromkeys(sorted(about_answer), ABOUT_THE_ANSWER)
    return [column for column in before if column not in reasons], needing, reasons


def _equal(first: Sequence[float | None], second: Sequence[float | None]) -> bool:
    # Rounding may differ with what else is computed at once.
    return bool(np.allclose(_numbers(first), _numbers(second), rtol=0, atol=1e-3, equal_nan=True))


def _distinct(numbers: Numbers) -> int:
    return int(np.unique(numbers[~np.isnan(numbers)]).size)


def _numbers(values: Sequence[float | None]) -> Numbers:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
