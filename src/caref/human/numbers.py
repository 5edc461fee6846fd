"""How numbers of a validation are written."""

from __future__ import annotations

from caref.human.resampling import Estimate
from caref.statistics.bootstrap import Interval

UNDEFINED = "–"


def number(value: float | None) -> str:
    """With two digits; what rounds to 0 has no sign.

    Example:
        >>> number(0.125), number(-0.001), number(None)
        ('0.12', '0.00', '–')
    """
    if value is None:
        return UNDEFINED
    text = f"{value:.2f}"
    return text.lstrip("-") if float(text) == 0 else text


def told(of: Estimate) -> str:
    """A number and its interval.

    Example:
        >>> told(Estimate(0.25, (0.2, 0.3), 10)), told(Estimate(None, note="few"))
        ('0.25 (0.20 to 0.30)', '–')
    """
    return number(of.value) + (f" ({between(of.interval)})" if of.interval else "")


def between(interval: Interval) -> str:
    """An interval's ends, with two digits."""
    return " to ".join(map(number, interval))


def percents(interval: Interval) -> str:
    """The ends of an interval of shares, in percent.

    Example:
        >>> percents((0.5, 0.625))
        '50.0 to 62.5'
    """
    return " to ".join(f"{100 * end:.1f}" for end in interval)
