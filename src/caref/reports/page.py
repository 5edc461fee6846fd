"""One page that holds everything: no script, nothing fetched, so that it can be kept and sent."""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence
from pathlib import Path

from caref.metrics.calibration.binned import BINS
from caref.reports import words
from caref.reports.figures import accuracy_figure, reliability_figure
from caref.reports.summary import Summary
from caref.results.files import write_atomically


def render_page(
    summary: Summary, *, title: str, command: str, about: Sequence[str] = (), not_shown: Sequence[str] = ()
) -> str:
    """The page as HTML.

    Args:
        summary: What it tells.
        title: Its heading.
        command: What makes these runs again.
        about: Paragraphs at its beginning.
        not_shown: What nobody should read into the numbers, a sentence each.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = importlib.resources.files("caref.reports").joinpath("page.html").read_text(encoding="utf-8")
    names = summary.value_names
    return environment.from_string(template).render(
        summary=summary,
        title=title,
        command=command,
        about=about,
        not_shown=not_shown,
        words=words,
        bins=BINS,
        # The SVG is made here, of numbers and names of ours, and its texts are escaped by its maker.
        accuracy=Markup(accuracy_figure(summary)) if "accuracy" in names else None,
        reliability=Markup(reliability_figure(summary)) if "calibration_error" in names else None,
    )


def write_page(path: Path, html: str) -> None:
    """Write the page."""
    write_atomically(path, html)
