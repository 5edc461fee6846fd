"""The time left: from the share of the work that is done, learnt from the runs before."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from caref.cli import progress
from caref.cli.progress import SHARES, _told, watched


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress.time, "monotonic", clock.monotonic)
    return clock


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=text, width=200))
    return text


def test_shares_are_shares() -> None:
    assert sum(SHARES.values()) == pytest.approx(1)


def test_the_second_run_knows_what_the_first_took(clock: Clock, lines: io.StringIO) -> None:
    """10 s of loading, 60 of training, 20 of decoding, 10 of scoring: 100 s a run."""
    with watched(runs=3, already=1) as watch:
        for name in ("one", "two"):
            watch.begin_run(name)
            clock.now += 10
            for step in range(60):
                watch.advance("training", step, 60)
                clock.now += 1
            watch.advance("decoding", 10, 20)
            clock.now += 20
            watch.advance("scoring", 0, 1)
            clock.now += 10
            watch.end_run()
    text = lines.getvalue()
    assert text.startswith("1 of 4 runs are complete already\nrun 1 of 3: one\n  training 0/60, ")
    first, second = text.split("run 2 of 3: two\n")
    assert first.endswith("  done in 1 min 40 s, 3 min 20 s left\n")
    # 110 s of 300 are done when the training of the second begins: 190 s left, exactly.
    assert second.splitlines()[0] == "  training 0/60, 3 min 10 s left"
    assert second.splitlines()[-1] == "  done in 1 min 40 s, 1 min 40 s left"


def test_long_stages_speak_up_now_and_then(clock: Clock, lines: io.StringIO) -> None:
    with watched(runs=1, already=0) as watch:
        watch.begin_run("one")
        for step in range(100):
            watch.advance("training", step, 100)
            clock.now += 1
    spoken = [line for line in lines.getvalue().splitlines() if "training" in line]
    assert [line.split(",")[0] for line in spoken] == [f"  training {n}/100" for n in (0, 30, 60, 90)]


def test_runs_at_the_same_time(clock: Clock, lines: io.StringIO) -> None:
    with watched(runs=4, already=0) as watch:
        clock.now += 100
        watch.run_complete("one", 90.0)
        clock.now += 20
        watch.run_complete("two", 110.0)
    assert lines.getvalue().splitlines() == [
        "1 of 4 done: one in 1 min 30 s, 5 min 00 s left",
        "2 of 4 done: two in 1 min 50 s, 2 min 00 s left",
    ]


def test_nothing_to_do(lines: io.StringIO) -> None:
    with watched(runs=0, already=2):
        pass
    assert lines.getvalue() == "2 of 2 runs are complete already\n"


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.4, "0 s"), (59.6, "1 min 00 s"), (3599, "59 min 59 s"), (7260, "2 h 01 min")]
)
def test_durations(seconds: float, told: str) -> None:
    assert _told(seconds) == told
