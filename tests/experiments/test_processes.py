"""A run on two processes, started as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from caref.results.run_directory import complete_runs


@pytest.mark.slow
def test_torchrun_trains_on_two_processes_and_the_first_one_writes(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    flags = [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    launcher = ["torch.distributed.run", "--nproc_per_node", "2", "--master_addr", "127.0.0.1"]
    command = [sys.executable, "-m", *launcher, "--master_port", "29631", "-m", "caref", "run", *flags]
    done = subprocess.run(
        [*command, "--seeds", "1,2", "--batch-size", "2", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("written to") == 1
    runs = list(complete_runs(tmp_path))
    assert len(runs) == 2
    for run in runs:
        assert len(run.read_predictions()) == settings["eval_size"]
        history = [json.loads(line) for line in (run.path / "history.jsonl").read_text().splitlines()]
        # 8 shots, 2 for each of 2 processes: 2 steps an epoch.
        assert [entry["step"] for entry in history if "loss" in entry] == [2, 4]
