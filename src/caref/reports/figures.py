"""The figures of a report, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from caref.metrics.calibration.binned import BINS
from caref.reports.drawing import COLOURS, INK, MARKERS, as_svg, axes_grid
from caref.reports.summary import Summary, TaskSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def accuracy_figure(summary: Summary) -> str:
    """Accuracy by setting, a dot a split; dots of one split are joined, the bar is the mean."""
    with axes_grid(len(summary.tasks), rows=(1.0,), height=2.6) as (figure, axes):
        for ax, task in zip(axes[0], summary.tasks, strict=True):
            ax.set_title(task.task)
            _accuracy(ax, task, summary.settings)
        axes[0][0].set_ylabel("accuracy, %")
    return as_svg(figure, "Accuracy of every setting on every task, one dot a split")


def reliability_figure(summary: Summary) -> str:
    """Of the compared settings: how often the likeliest candidate is right, against its probability."""
    with axes_grid(len(summary.tasks), rows=(3.0, 1.0), height=3.6) as (figure, axes):
        for column, task in enumerate(summary.tasks):
            top, bottom = axes[0][column], axes[1][column]
            top.set_title(task.task)
            top.plot([0, 1], [0, 1], color=INK, linewidth=0.6, linestyle=(0, (2, 2)))
            for name in summary.compared:
                _reliability(top, bottom, task, name, summary.settings.index(name))
            top.set_ylim(-0.03, 1.03)
            for ax in (top, bottom):
                ax.set_xlim(-0.03, 1.03)
                ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"] if ax is bottom else [])
            bottom.locator_params(axis="y", nbins=2)
            bottom.set_xlabel("probability")
        axes[0][0].set_ylabel("share right")
        axes[1][0].set_ylabel("count")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=len(labels))
    return as_svg(figure, "Share of right answers against the probability of the likeliest candidate")


def _accuracy(ax: Axes, task: TaskSummary, settings: Sequence[str]) -> None:
    values = [task.values[name]["accuracy"].per_split for name in settings]
    for split in zip(*values, strict=True):
        heights = [float("nan") if value is None else value for value in split]
        ax.plot(range(len(split)), heights, color=COLOURS[0], linewidth=0.5, alpha=0.5)
    for place, (name, numbers) in enumerate(zip(settings, values, strict=True)):
        colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
        known = [value for value in numbers if value is not None]
        ax.plot([place] * len(known), known, marker, color=colour, markersize=4, alpha=0.8, markeredgewidth=0)
        mean = task.values[name]["accuracy"].mean
        if mean is not None:
            ax.hlines(mean, place - 0.28, place + 0.28, color=colour, linewidth=1.6)
    if task.chance is not None:
        ax.axhline(task.chance, color=INK, linewidth=0.6, linestyle=(0, (2, 2)))
        ax.text(len(settings) - 0.5, task.chance + 1, "chance", fontsize=7, ha="right", va="bottom")
    ax.set_xlim(-0.5, len(settings) - 0.5)
    ax.set_ylim(-3, 103)
    ax.set_xticks(range(len(settings)), settings)


def _reliability(top: Axes, bottom: Axes, task: TaskSummary, name: str, place: int) -> None:
    colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
    bins = task.reliability[name]
    most = max((each.count for each in bins), default=1)
    top.plot([], [], marker, linestyle="-", color=colour, markersize=4, linewidth=0.8, label=name)
    points = [each.confidence for each in bins], [each.right for each in bins]
    top.plot(*points, color=colour, linewidth=0.8, alpha=0.6)
    top.scatter(
        *points,
        s=[6 + 34 * each.count / most for each in bins],
        marker=marker,
        color=colour,
        linewidths=0,
        alpha=0.85,
    )
    counts = [0] * BINS
    for each in bins:
        counts[each.place] = each.count
    bottom.stairs(counts, [edge / BINS for edge in range(BINS + 1)], color=colour, linewidth=1)
