"""Runs in several processes at once, each with data, tokenizers and encoders of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

from caref.errors import CarefError
from caref.experiments.progress import Progress
from caref.experiments.resources import Resources
from caref.experiments.run import RunOptions, execute
from caref.experiments.spec import RunSpec


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def execute_in_workers(
    specs: Sequence[RunSpec],
    root: Path,
    *,
    workers: int,
    threads: int | None,
    options: RunOptions | None,
    progress: Progress,
) -> None:
    """Carry out runs, so many at once; the first that fails, or Ctrl-C, stops all of them.

    Args:
        specs: Runs that are not complete.
        root: The folder of the run directories.
        workers: Processes at the most.
        threads: CPU threads of each; None shares out the cores.
        options: How to run.
        progress: Told of every run when it is complete.

    Raises:
        CarefError: What a run raised, or that a process was killed.
    """
    workers = min(workers, len(specs))
    threads = threads or max(1, available_cores() // workers)
    others = set(multiprocessing.active_children())
    # Not forked: a fork of a process in which torch has started its threads may hang.
    executor = ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(threads,)
    )
    try:
        with _interrupts_ignored():  # which the processes inherit: Ctrl-C is this one's to handle
            names = {executor.submit(_run, spec, root, options): spec.directory_name for spec in specs}
        for done in as_completed(names):
            progress.run_complete(names[done], done.result())
    except BaseException as error:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        if isinstance(error, BrokenProcessPool):
            raise CarefError(
                f"one of {workers} processes was killed, perhaps for want of memory; "
                "the same command again goes on from here, with fewer workers if that was it"
            ) from error
        raise
    finally:
        executor.shutdown(cancel_futures=True)


_resources: Resources | None = None
"""Of a worker: kept between its runs."""


def _begin(threads: int) -> None:
    import torch

    torch.set_num_threads(threads)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that is killed cannot stop its workers, and they would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(spec: RunSpec, root: Path, options: RunOptions | None) -> float:
    global _resources
    _resources = _resources or Resources()
    began = time.monotonic()
    execute(spec, root, options=options, resources=_resources)
    return time.monotonic() - began


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # where signals cannot be set
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
