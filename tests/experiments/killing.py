"""Runs ``caref`` in processes that are killed at a chosen moment; a script, so that it can fork.

    python killing.py GROUPS.json

reads a list of groups of ``{"arguments": [...], "moment": name or null, "log": path}``. The processes of a
group run at the same time, group after group. A ``"keep": [folder, copy]`` copies what a process left. It
prints one exit code per process, in order; minus the signal's number where a signal ended it. A fork of a
process that has imported everything and computed nothing starts in no time, and the signal is a real one.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def _end(number: int = signal.SIGKILL) -> None:
    os.kill(os.getpid(), number)


def _after(owner: Any, name: str, *, times: int = 1, number: int = signal.SIGKILL) -> None:
    """Die when `owner.name` has returned for the given time."""
    _around(owner, name, lambda count: _end(number) if count == times else None, before=False)


def _before(owner: Any, name: str, *, times: int = 1, number: int = signal.SIGKILL) -> None:
    """Die when `owner.name` is called for the given time."""
    _around(owner, name, lambda count: _end(number) if count == times else None, before=True)


def _around(owner: Any, name: str, then: Callable[[int], None], *, before: bool) -> None:
    original, calls = getattr(owner, name), [0]

    def replaced(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if before:
            then(calls[0])
        result = original(*args, **kwargs)
        if not before:
            then(calls[0])
        return result

    setattr(owner, name, replaced)


def prepare(moment: str) -> None:
    """Make this process end at a moment."""
    import peft
    from transformers import TrainerState

    from caref.generation.prediction import Prediction
    from caref.results import files, run_directory
    from caref.results.run_directory import RunDirectory
    from caref.training.callbacks import StepCallback

    match moment:
        case "spec half written":
            _before(Path, "replace")
        case "spec written":
            _after(RunDirectory, "start")
        case "training":
            _after(StepCallback, "on_step_end", times=3)
        case "interrupt":
            _before(StepCallback, "on_step_end", times=3, number=signal.SIGINT)
        case "checkpoint half written":
            _before(TrainerState, "save_to_json", times=2)
        case "checkpoint written":
            _after(TrainerState, "save_to_json", times=2)
        case "history written":
            _after(RunDirectory, "write_history")
        case "adapter half written":
            # After three checkpoints; the configuration follows the weights.
            _before(peft.PeftConfig, "save_pretrained", times=4)
        case "adapter written":
            _after(peft.PeftModel, "save_pretrained", times=4)
        case "predictions half written":
            _before(Prediction, "model_dump", times=4)
        case "predictions written":
            _after(RunDirectory, "write_predictions")
        case "scores written":
            _after(RunDirectory, "write_scores")
        case "card written":
            _after(RunDirectory, "write_card")
        case "environment written":
            _after(run_directory, "write_json", times=2)
        case "result half written":
            # After spec, history, scores, card and environment.
            _before(Path, "replace", times=6)
        case "result written":
            _after(files, "_flush_directory", times=6)
        case _:
            raise ValueError(moment)


def start(case: dict[str, Any]) -> int:
    """Fork a process that runs the command line; its id."""
    process = os.fork()
    if process:
        return process
    from caref.cli import main

    log = os.open(case["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts with &
    code = 70
    try:
        if case["moment"]:
            prepare(case["moment"])
        main(case["arguments"])
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else 71
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run(groups: list[list[dict[str, Any]]]) -> list[int]:
    """Run every group; the exit codes."""
    codes = []
    for group in groups:
        processes = [start(case) for case in group]
        codes += [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
        for case in group:
            if "keep" in case:
                shutil.copytree(*case["keep"])
    return codes


if __name__ == "__main__":
    import peft  # noqa: F401
    import torch

    import caref.cli.run
    import caref.experiments.series
    import caref.generation.answering
    import caref.metrics.bertscore.scorer
    import caref.training.train  # noqa: F401

    torch.set_num_threads(1)
    gc.freeze()
    print(json.dumps(run(json.loads(Path(sys.argv[1]).read_text()))))
