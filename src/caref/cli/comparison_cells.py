"""What ``caref compare`` found as cells of a table and as flat records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_lowercase
from typing import Any

from caref.reports import words
from caref.results.comparison import SAME, Comparison
from caref.results.factors import DecomposedDifference, Factors
from caref.results.ranking import RankedBy
from caref.results.values import ComparedValue
from caref.statistics.bootstrap import Interval
from caref.statistics.number import Number
from caref.statistics.ranking import Ranking

UNDEFINED = "undefined"


def comparison_headings(reference: str, see: float) -> list[str]:
    """Of `comparison_cells`."""
    return [
        *("value", "setting", reference, "setting's", "difference", "95 % interval", "p, examples"),
        *("p, splits", "p, Holm", "d_z", f"splits for {see:g}", "verdict"),
    ]


def comparison_cells(each: Comparison) -> list[str]:
    """One comparison as a row."""
    of, value = each.difference, each.value
    if of is None or each.means is None or each.p_holm is None:
        return [value.heading, each.setting, *[UNDEFINED] * 9, each.verdict]
    return [
        value.heading,
        each.setting,
        *(_amount(value, mean) for mean in each.means),
        _amount(value, of.mean, sign=True),
        f"{_amount(value, of.low, sign=True)} to {_amount(value, of.high, sign=True)}",
        p_text(of.p_value),
        UNDEFINED if each.p_splits.value is None else p_text(each.p_splits.value),
        p_text(each.p_holm),
        optional(each.effect, 2, sign=True),
        optional(each.needed, 0),
        _verdict(each),
    ]


def _verdict(each: Comparison) -> str:
    """The verdict, with a warning where it is one that no test over splits has agreed with."""
    few = each.p_splits.value is None and each.verdict != SAME and not each.verdict.startswith(UNDEFINED)
    return f"{each.verdict}, few splits" if few else each.verdict


def comparison_record(each: Comparison) -> dict[str, Any]:
    """One comparison as a flat record; None where a number is undefined: ``verdict`` or a note says why."""
    of, means = each.difference, each.means or (None, None)
    return {
        "task": each.task,
        "value": each.value.name,
        "reference": each.reference,
        "setting": each.setting,
        "reference_mean": means[0],
        "setting_mean": means[1],
        "difference": of.mean if of else None,
        "low": of.low if of else None,
        "high": of.high if of else None,
        "p_examples": of.p_value if of else None,
        "p_splits": each.p_splits.value,
        "p_splits_note": each.p_splits.note,
        "p_holm": each.p_holm,
        "effect_size": each.effect.value,
        "effect_size_note": each.effect.note,
        "splits_needed": each.needed.value,
        "splits_needed_note": each.needed.note,
        "higher": each.higher,
        "lower": each.lower,
        "splits": of.splits if of else 0,
        "pairs": of.pairs if of else 0,
        "left_out": each.left_out,
        "verdict": each.verdict,
    }


def factor_headings() -> list[str]:
    """Of `factor_cells`."""
    return [
        *(
            "setting",
            "accuracy %",
            "F1 given right %",
            "nBERT %",
            "difference",
            "by accuracy",
            "95 % interval",
        ),
        *("by explanations", "95 % interval"),
    ]


def factor_cells(parts: Sequence[DecomposedDifference]) -> Iterator[list[str]]:
    """The reference's row, then one of each setting; `parts` are of one task."""
    yield [parts[0].reference, *_factors(parts[0].before), *[""] * 5]
    for each in parts:
        yield [
            each.setting,
            *_factors(each.after),
            words.number(each.parts.difference, 2, sign=True),
            optional(each.parts.accuracy_part, 2, sign=True),
            _interval(each.accuracy_interval),
            optional(each.parts.explanation_part, 2, sign=True),
            _interval(each.explanation_interval),
        ]


def decomposition_record(each: DecomposedDifference) -> dict[str, Any]:
    """One decomposition as a flat record; None where a number is undefined, and ``note`` says why."""
    accuracy, explanation = (
        ends or (None, None) for ends in (each.accuracy_interval, each.explanation_interval)
    )
    return {
        "task": each.task,
        "reference": each.reference,
        "setting": each.setting,
        **{f"reference_{name}": getattr(each.before, name) for name in Factors.__slots__},
        **{f"setting_{name}": getattr(each.after, name) for name in Factors.__slots__},
        "difference": each.parts.difference,
        "accuracy_part": each.parts.accuracy_part.value,
        "accuracy_low": accuracy[0],
        "accuracy_high": accuracy[1],
        "explanation_part": each.parts.explanation_part.value,
        "explanation_low": explanation[0],
        "explanation_high": explanation[1],
        "note": each.parts.accuracy_part.note,
    }


def ranking_cells(ranking: Ranking) -> list[list[str]]:
    """A row of each setting: its mean rank and the letters of its groups."""
    return [
        [name, words.number(rank, 2), _letters(ranking, name)] for name, rank in ranking.mean_ranks.items()
    ]


def ranking_record(each: RankedBy) -> dict[str, Any]:
    """One ranking; None where a number is undefined, and ``note`` says why."""
    ranking = each.ranking
    return {
        "value": each.value.name,
        "blocks": ranking.blocks,
        "mean_ranks": ranking.mean_ranks,
        "p_friedman": ranking.p_value.value,
        "critical_difference": ranking.critical_difference.value,
        "groups": [list(group) for group in ranking.groups],
        "note": ranking.p_value.note,
    }


def p_text(p: float) -> str:
    """A p-value as a cell.

    Example:
        >>> p_text(0.0004), p_text(0.0312)
        ('< 0.001', '0.031')
    """
    return words.p_value(p).removeprefix("= ")


def optional(found: Number, digits: int, *, sign: bool = False) -> str:
    """A number with so many digits after the point, or that it is undefined."""
    return UNDEFINED if found.value is None else words.number(found.value, digits, sign=sign)


def _letters(ranking: Ranking, name: str) -> str:
    return "".join(
        ascii_lowercase[place % len(ascii_lowercase)]
        for place, group in enumerate(ranking.groups)
        if name in group
    )


def _amount(value: ComparedValue, number: float, *, sign: bool = False) -> str:
    return words.number(number, 2 if value.points else 4, sign=sign)


def _factors(factors: Factors) -> list[str]:
    f1 = factors.f1_given_right
    return [
        words.number(factors.accuracy, 2),
        UNDEFINED if f1 is None else words.number(f1, 2),
        words.number(factors.nbert, 2),
    ]


def _interval(ends: Interval | None) -> str:
    if ends is None:
        return UNDEFINED
    return " to ".join(words.number(end, 2, sign=True) for end in ends)
