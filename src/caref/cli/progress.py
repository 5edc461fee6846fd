"""Progress of a series of runs: a bar with the time left, plain lines where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LOADING = "loading"
SHARES = {LOADING: 0.05, "training": 0.6, "decoding": 0.3, "scoring": 0.05}
"""A first guess of each stage's share of a run's time; replaced by what the run before took."""

SECONDS_BETWEEN_LINES = 30.0
"""How often the same stage gets a line where there is no terminal."""


@contextmanager
def watched(*, runs: int, already: int) -> Iterator[SeriesProgress]:
    """Watch a series of so many runs; so many more are complete already."""
    console = Console(stderr=True)
    if already:
        console.print(f"{already} of {runs + already} runs are complete already", highlight=False)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("run {task.fields[run]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=console,
        disable=not console.is_terminal or runs == 0,
    )
    with bar:
        yield SeriesProgress(bar, console, runs)


@contextmanager
def counted(description: str) -> Iterator[Callable[[int, int], None]]:
    """Watch one thing; what is given is told how much of how much is done."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
    task = bar.add_task(description, total=None)
    began = printed = time.monotonic()

    def told(done: int, total: int) -> None:
        nonlocal printed
        bar.update(task, completed=done, total=total)
        now = time.monotonic()
        if bar.disable and done and (now - printed >= SECONDS_BETWEEN_LINES):
            printed = now
            left = _told((now - began) * (total - done) / done)
            share = f"{100 * done / total:.0f} %"
            console.print(f"{description}: {share}, {left} left", highlight=False, markup=False)

    with bar:
        yield told


class SeriesProgress:
    """Estimates the time left from the stages' shares of the runs done so far."""

    def __init__(self, bar: Progress, console: Console, runs: int) -> None:
        self.bar, self.console, self.runs = bar, console, runs
        self.task = bar.add_task("", total=runs, left="", run=f"1 of {runs}")
        self.done = 0
        self.started = time.monotonic()
        self.shares = dict(SHARES)
        self._spent: dict[str, float] = {}
        self._stage, self._stage_began, self._run_began, self._line_printed = "", 0.0, 0.0, 0.0

    def begin_run(self, name: str) -> None:
        """A run begins."""
        self._run_began = self._stage_began = time.monotonic()
        self._stage, self._spent = "", {}
        self._line(f"run {self.done + 1} of {self.runs}: {name}")
        self.bar.update(self.task, description=LOADING, run=f"{self.done + 1} of {self.runs}")

    def advance(self, stage: str, done: int, total: int) -> None:
        """A stage has done so much of so much."""
        within = self._before(stage) + self.shares.get(stage, 0.0) * done / max(1, total)
        left = self._left(within)
        if stage != self._stage:
            self._close_stage()
            self._stage = stage
            self._line(f"  {stage} {done}/{total}, {left}")
        elif time.monotonic() - self._line_printed >= SECONDS_BETWEEN_LINES:
            self._line(f"  {stage} {done}/{total}, {left}")
        self.bar.update(
            self.task,
            completed=self.done + min(within, 1.0),
            description=f"{stage} {done}/{total}",
            left=left,
        )

    def end_run(self) -> None:
        """A run is complete."""
        self._close_stage()
        seconds = time.monotonic() - self._run_began
        self.shares = {stage: spent / seconds for stage, spent in self._spent.items()}
        self.done += 1
        left = self._left(0.0)
        self.bar.update(self.task, completed=self.done, description="done", left=left)
        self._line(f"  done in {_told(seconds)}, {left}")

    def run_complete(self, name: str, seconds: float) -> None:
        """A run is complete that was one of several at once."""
        self.done += 1
        left = self._left(0.0)
        present = f"{min(self.done + 1, self.runs)} of {self.runs}"
        self.bar.update(self.task, completed=self.done, description="done", left=left, run=present)
        self._line(f"{self.done} of {self.runs} done: {name} in {_told(seconds)}, {left}")

    def _line(self, text: str) -> None:
        """A plain line where there is no terminal to draw a bar on."""
        if self.bar.disable:
            self._line_printed = time.monotonic()
            self.console.print(text, soft_wrap=True, highlight=False, markup=False)

    def _close_stage(self) -> None:
        now = time.monotonic()
        if self._stage:
            self._spent[self._stage] = self._spent.get(self._stage, 0.0) + now - self._stage_began
        elif self._run_began:
            self._spent[LOADING] = now - self._run_began
        self._stage_began = now

    def _before(self, stage: str) -> float:
        before = 0.0
        for name, share in self.shares.items():
            if name == stage:
                break
            before += share
        return before

    def _left(self, within: float) -> str:
        """The time left, from the share of all work that is done."""
        share = (self.done + min(within, 1.0)) / self.runs
        if share < 0.005:
            return "time left not known yet"
        return f"{_told((time.monotonic() - self.started) * (1 - share) / share)} left"


def _told(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
