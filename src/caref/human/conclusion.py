"""What follows from the ratings about a difference in nBERT, in sentences made of the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from caref.human.differences import Bin, Differences, SystemPair
from caref.human.numbers import percents

UNKNOWN = "What a difference in nBERT means is not known here: BERTScore was not computed."


def conclusion(found: Differences | None) -> list[str]:
    """How much a difference in nBERT can mean, sentence by sentence."""
    if found is None:
        return [UNKNOWN]
    encoder = found.computed_by.get("encoder", "this encoder")
    known = [each for each in found.explanations if each.concordance is not None]
    in_bins = "; ".join(map(_in_bin, known))
    sentences = [
        "Of two generated explanations that people rate differently, the one with the higher BERTScore F1 "
        f"by {encoder} is the better rated {in_bins}. Guessing gives 50 %."
    ]
    edge = edge_of_guessing(known)
    if edge:
        sentences.append(
            f"With less than {edge:g} {'point' if edge == 1 else 'points'} between the two, that is not "
            "distinguishable from guessing."
        )
    sentences += _of_systems(found.systems)
    sentences.append(
        "nBERT is accuracy times the mean of this F1 over right answers, and every answer here is right: "
        "nothing of this is about the part of a difference that is accuracy. Points of another encoder are "
        "another scale."
    )
    return sentences


def edge_of_guessing(found: Sequence[Bin]) -> float:
    """The upper edge of the first bins as far as their intervals hold 50 % or lie below it; 0 without any."""
    edge = 0.0
    for each in found:
        # Rounded as it is printed: an interval from 50.0 % does not leave guessing below it.
        if each.high is None or each.interval is None or round(each.interval[0], 3) > 0.5:
            break
        edge = each.high
    return edge


def _of_systems(pairs: Sequence[SystemPair]) -> list[str]:
    if not pairs:
        return []
    wrong = [each for each in pairs if not each.agree]
    counted = f"{len(pairs) - len(wrong)} of {len(pairs)} pairs of systems"
    if not wrong:
        return [f"Of two systems, the one with the higher mean F1 is the more plausible in {counted}."]
    largest = max(wrong, key=lambda each: each.metric)
    return [
        f"Of two systems, the one with the higher mean F1 is the more plausible in {counted}; the largest "
        f"difference that points the wrong way is {largest.metric:.2f} points (on {largest.task}, "
        f"{largest.first} above {largest.second}, but {-largest.plausibility:.1f} of 100 less plausible).",
        f"So {largest.metric:.2f} points or less between two systems' means are no evidence of which one "
        "explains better; with so few systems, nor is it shown that more points are.",
    ]


def _in_bin(of: Bin) -> str:
    assert of.concordance is not None
    apart = f"{of.low:g} to {of.high:g} points" if of.high is not None else f"{of.low:g} points or more"
    between = f" ({percents(of.interval)})" if of.interval else ""
    return f"in {100 * of.concordance:.1f} %{between} at {apart}"
