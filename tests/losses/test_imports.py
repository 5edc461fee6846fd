from __future__ import annotations

import subprocess
import sys


def modules_after(code: str) -> set[str]:
    code += "; import sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_using_an_objective_imports_torch_and_no_models() -> None:
    loaded = modules_after("from caref.losses import CarefLoss; CarefLoss()")
    assert "torch" in loaded
    assert not loaded & {"transformers", "peft", "pydantic", "datasets", "accelerate"}


def test_listing_the_objectives_does_not_import_torch() -> None:
    loaded = modules_after("from caref.losses import OBJECTIVES; OBJECTIVES.names()")
    assert "torch" not in loaded
