"""How figures are drawn as SVG: small, for light and dark pages alike, equal bytes for equal data."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#808080", "#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""Of the settings, in order: grey, then those of Okabe and Ito, which colour-blind readers can tell apart,
that stand out from white and from black. Markers differ too."""

MARKERS = "osD^v"

INK = "#010203"
"""Stands for the colour of the page's text, which replaces it in the SVG."""

_STYLE: Any = {
    "text.parse_math": False,
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}


@contextmanager
def axes_grid(
    columns: int, *, rows: tuple[float, ...], height: float
) -> Iterator[tuple[Figure, list[list[Axes]]]]:
    """A grid of small axes that share their scales, made without the state that pyplot keeps."""
    from matplotlib.figure import Figure as NewFigure

    with _style():
        figure = NewFigure(figsize=(1.0 + 1.9 * columns, height), layout="constrained")
        axes = figure.subplots(
            len(rows), columns, squeeze=False, sharey="row", gridspec_kw={"height_ratios": rows}
        )
        yield figure, axes.tolist()


@contextmanager
def _style(own: Any = MappingProxyType({})) -> Iterator[None]:
    """Matplotlib's own defaults, whatever the user's matplotlibrc says, with ours over them."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_STYLE, **own})
        yield


def as_svg(figure: Figure, description: str) -> str:
    """The figure as an element for a page: text in the page's colour, no ids that another figure has too."""
    file = io.StringIO()
    with _style({"svg.hashsalt": description}):
        figure.savefig(file, format="svg", transparent=True)
    text = file.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    # Matplotlib numbers groups (id="axes_1"). What is referred to has a hash for an id, and stays.
    text = re.sub(r' id="[\w.]+_\d+"', "", text)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    return text.replace("<svg ", f'<svg role="img" aria-label="{description}" ', 1)
