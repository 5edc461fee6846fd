"""What a validation says, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from caref.human.association import ALL, FEWEST_ODD, MEAN_OF_SYSTEMS, MEAN_OF_TASKS
from caref.human.differences import Bin
from caref.human.numbers import UNDEFINED, number, percents, told
from caref.human.resampling import Estimate
from caref.human.validation import Validation
from caref.human.validity import Validity
from caref.metrics.result import MetricResult


@dataclass(frozen=True)
class Section:
    """A title, a table, and what is to be known to read it."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1
    told: Sequence[str] = ()


def sections(of: Validation) -> Iterator[Section]:
    """All tables of a validation, in the order in which they are read."""
    yield Section(
        "What people say",
        ["data set", "system", "n", *_TWICE, "raters' answers right, %"],
        list(_people(of)),
        text_columns=2,
        told=[
            f"{of.n:,} pairs of a gold and a generated explanation, of {of.n_questions:,} distinct "
            "questions. Unanimous and kappa (Randolph's, chance 1/2) are of two values: yes or weak yes, and "
            "no or weak no. "
            "Plausibility is the mean rating times 100, with the standard deviation of the questions' means."
        ],
    )
    yield Section(
        "Agreement with and without chance",
        ["data set", "system", "explanation", "plausibility", "pairwise", *_CHANCE],
        list(_agreement(of)),
        text_columns=3,
        told=[
            "With 95 % intervals over questions. Pairwise agreement and both alphas are of the four words; "
            "both kappas of two values. Where nearly all ratings are alike, Randolph's kappa is high by that."
        ],
    )
    tasks = list(dict.fromkeys(each.task for each in of.rated))
    held = [*of.metrics, of.one_rater]
    for name in ("spearman", "kendall"):
        yield Section(
            f"{_CORRELATIONS[name]} with the mean rating of the generated explanation",
            ["", *tasks, MEAN_OF_TASKS, MEAN_OF_SYSTEMS, ALL],
            [
                [each.name, *(told(getattr(each, name)[scope]) for scope in (*tasks, *_POOLED))]
                for each in held
            ],
            told=[
                "The reference is the gold explanation that was shown. The last row is what one rater's "
                "rating says of the mean of the other two. A dash: fewer than "
                f"{FEWEST_ODD} explanations have another number than the commonest."
            ],
        )
    cells = list(dict.fromkeys(f"{each.task}/{each.system}" for each in of.rated))
    yield Section(
        "Spearman, system by system",
        ["", *cells],
        [[each.name, *(number(each.spearman[cell].value) for cell in cells)] for each in held],
    )
    yield Section(
        "AUC: gold explanations above generated ones",
        ["", "compares with", *tasks, f"mean of {' and '.join(of.auc_tasks)}"],
        [
            [each.name, _compared(each), *(told(each.auc[scope]) for scope in (*tasks, MEAN_OF_TASKS))]
            for each in held
        ],
        text_columns=2,
        told=[
            "The share of pairs of a gold and a generated explanation in which the gold one has the higher "
            "number; 0.5 is guessing. References are those that were not shown to the raters.",
            *_undefined(held),
        ],
    )
    if of.differences is not None:
        for name, found in (
            ("data set", of.differences.explanations),
            ("question", of.differences.same_question),
        ):
            yield Section(
                f"BERTScore F1: two generated explanations of one {name}",
                ["points apart", "pairs", "rated the same, %", "higher is better rated, %", "better by"],
                [list(_bin(each)) for each in found],
                told=[
                    "The share is of the pairs that are rated differently; 50 % is guessing. The last column "
                    "is the difference in mean rating, of 100, over all pairs."
                ],
            )
        yield Section(
            "BERTScore F1: two systems of one data set",
            ["data set", "higher F1", "lower F1", "F1 above by", "plausibility above by"],
            [
                [each.task, each.first, each.second, number(each.metric), number(each.plausibility)]
                for each in sorted(of.differences.systems, key=lambda pair: pair.metric)
            ],
            text_columns=3,
        )


_TWICE = [
    f"{side}: {what}" for side in ("gold", "generated") for what in ("unanimous", "kappa", "plausibility")
]
_CHANCE = ["alpha, ordinal", "alpha, nominal", "Fleiss' kappa", "Randolph's kappa"]
_CORRELATIONS = {"spearman": "Spearman's correlation", "kendall": "Kendall's tau-b"}
_POOLED = (MEAN_OF_TASKS, MEAN_OF_SYSTEMS, ALL)


def left_out(reasons: Mapping[str, str]) -> list[str]:
    """A line for each reason, with the names that it holds for."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    return [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]


def _people(of: Validation) -> Iterator[list[str]]:
    for gold, generated in zip(of.rated[::2], of.rated[1::2], strict=True):
        both = [
            text
            for side in (gold, generated)
            for text in (
                f"{side.agreement.values['unanimous']:.0f}",
                f"{side.agreement.values['randolph_kappa']:.4f}",
                f"{side.plausibility.values['plausibility']:.2f} "
                f"({side.plausibility.values['plausibility_std']:.2f})",
            )
        ]
        n = f"{gold.plausibility.values['n']:.0f}"
        yield [gold.task, gold.system, n, *both, f"{100 * gold.right_answers:.1f}"]


def _agreement(of: Validation) -> Iterator[list[str]]:
    measures = ("pairwise_agreement", "alpha_ordinal", "alpha_nominal", "fleiss_kappa", "randolph_kappa")
    for each in of.rated:
        numbers = [_of_result(each.agreement, name) for name in measures]
        plausible = _of_result(each.plausibility, "plausibility")
        yield [each.task, each.system, each.explanations, plausible, *numbers]


def _of_result(result: MetricResult, name: str) -> str:
    return told(Estimate(result.values[name], result.intervals.get(name)))


def _bin(of: Bin) -> Iterator[str]:
    yield f"{of.low:g} to {of.high:g}" if of.high is not None else f"{of.low:g} or more"
    yield f"{of.pairs:,}"
    yield f"{100 * of.tied / of.pairs:.0f}" if of.pairs else UNDEFINED
    between = f" ({percents(of.interval)})" if of.interval else ""
    yield UNDEFINED if of.concordance is None else f"{100 * of.concordance:.1f}{between}"
    yield UNDEFINED if of.gain is None else f"{of.gain:.1f}"


def _compared(of: Validity) -> str:
    return "other references" if of.needs_reference else "nothing"


def _undefined(held: Sequence[Validity]) -> list[str]:
    """Why an AUC is undefined, a line a data set and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in held:
        for scope, estimate in each.auc.items():
            if estimate.note is not None:
                found.setdefault((scope, estimate.note), []).append(each.name)
    return [f"Undefined in {scope}, {', '.join(names)}: {note}." for (scope, note), names in found.items()]
