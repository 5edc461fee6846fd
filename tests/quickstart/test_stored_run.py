"""The quickstart, run as a user runs it, against what it once gave.

After a change that is meant to alter its numbers run ``caref quickstart --splits 0 --out OUT``, look at the
report, and store them with ``python tests/quickstart/test_stored_run.py OUT/summary.json``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

STORED = Path(__file__).resolve().parents[1] / "data" / "quickstart" / "split-0.json"

TOLERANCE = {
    # Nothing is trained before tuning: only rounding differs between machines.
    "before": {"accuracy": 1.0, "nbert": 1.0, "candidate_accuracy": 1.0, "calibration_error": 0.01},
    # A training carries rounding on; another loss, rate or draw moves more than this.
    "CE": {"accuracy": 5.0, "nbert": 5.0, "candidate_accuracy": 5.0, "calibration_error": 0.05},
    "CAREF": {"accuracy": 5.0, "nbert": 5.0, "candidate_accuracy": 5.0, "calibration_error": 0.05},
}


def means(summary: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Task to setting to value, rounded."""
    content = json.loads(summary.read_text(encoding="utf-8"))
    return {
        task["task"]: {
            setting: {name: round(task["values"][setting][name]["mean"], 4) for name in names}
            for setting, names in TOLERANCE.items()
        }
        for task in content["tasks"]
    }


@pytest.mark.slow
def test_the_quickstart_gives_what_it_gave(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "caref", "quickstart", "--splits", "0", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    stored, given = json.loads(STORED.read_text(encoding="utf-8")), means(tmp_path / "summary.json")
    assert given.keys() == stored.keys()
    for task, settings in stored.items():
        for setting, values in settings.items():
            for name, value in values.items():
                assert given[task][setting][name] == pytest.approx(value, abs=TOLERANCE[setting][name]), (
                    f"{task}, {setting}: {name}"
                )


if __name__ == "__main__":
    STORED.parent.mkdir(parents=True, exist_ok=True)
    STORED.write_text(json.dumps(means(Path(sys.argv[1])), indent=1) + "\n", encoding="utf-8")
