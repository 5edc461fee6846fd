"""Runs in processes of their own: the same results, and none left behind."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest

from caref.errors import CarefError
from caref.experiments import series
from caref.experiments.progress import Silent
from caref.experiments.run import RunOptions
from caref.experiments.series import run_series
from caref.experiments.spec import RunSpec

MakeSpec = Callable[..., RunSpec]


class Noted(Silent):
    def __init__(self, error: BaseException | None = None) -> None:
        self.complete: list[str] = []
        self.error = error

    def run_complete(self, name: str, seconds: float) -> None:
        assert seconds > 0
        self.complete.append(name)
        if self.error is not None:
            raise self.error


def small(make_spec: MakeSpec, count: int, **changes: object) -> list[RunSpec]:
    return [
        make_spec(seed=seed, metrics=("accuracy",), encoder=None, **changes) for seed in range(1, count + 1)
    ]


@pytest.mark.slow
def test_workers_write_what_one_process_writes(make_spec: MakeSpec, tmp_path: Path) -> None:
    specs = small(make_spec, 3)
    alone = run_series(specs, tmp_path / "alone")
    run_series(specs[:1], tmp_path / "shared")
    progress = Noted()
    shared = run_series(specs, tmp_path / "shared", progress=progress, workers=2, threads=1)

    assert shared == alone
    assert sorted(progress.complete) == sorted(spec.directory_name for spec in specs[1:])
    for spec in specs:
        for name in ("spec.json", "predictions.jsonl", "scores.jsonl", "result.json"):
            one, other = (tmp_path / root / spec.directory_name / name for root in ("alone", "shared"))
            assert one.read_bytes() == other.read_bytes(), name
    assert multiprocessing.active_children() == []


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("the screen broke")])
def test_what_stops_this_process_stops_the_workers(
    make_spec: MakeSpec, tmp_path: Path, error: BaseException
) -> None:
    """The second of two specs would take minutes."""
    quick, long = small(make_spec, 1, epochs=0)[0], small(make_spec, 1, epochs=10_000)[0]
    with pytest.raises(type(error)):
        run_series([quick, long], tmp_path, progress=Noted(error), workers=2, threads=1)

    assert multiprocessing.active_children() == []
    assert not (tmp_path / long.directory_name / "result.json").exists()
    with pytest.raises(type(error)):  # nobody holds its lock any more
        run_series([quick, long], tmp_path, progress=_Stops(error))


class _Stops(Silent):
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def advance(self, stage: str, done: int, total: int) -> None:
        raise self.error


@pytest.mark.slow
def test_the_first_mistake_is_told_and_stops_the_others(make_spec: MakeSpec, tmp_path: Path) -> None:
    wrong = make_spec(shots=2_000, metrics=("accuracy",), encoder=None)
    long = small(make_spec, 1, epochs=10_000)[0]
    with pytest.raises(CarefError, match="examples with label 'no' are to be drawn"):
        run_series([wrong, long], tmp_path, workers=2, threads=1)
    assert multiprocessing.active_children() == []


def test_nothing_to_do_starts_no_process(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spec,) = small(make_spec, 1, epochs=0)
    first = run_series([spec], tmp_path, options=RunOptions(save_adapter=False))
    monkeypatch.setattr(series, "execute_in_workers", lambda *_, **__: pytest.fail("processes were started"))
    assert run_series([spec], tmp_path, workers=2) == first


def test_workers_and_a_launcher_are_too_many(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(CarefError, match="4 processes share each run already; leave workers at 1"):
        run_series([make_spec()], tmp_path, workers=2)
