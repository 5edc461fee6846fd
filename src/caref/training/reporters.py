"""The Trainer's reporters: TensorBoard, W&B, MLflow and what else transformers knows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from caref.errors import CarefError


def check_reporters(names: Sequence[str]) -> None:
    """Find out before the training that a reporter is misspelt or not installed.

    Raises:
        CarefError: If the Trainer does not know it, or its package is missing.
    """
    if not names:
        return
    from transformers.integrations import get_available_reporting_integrations
    from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

    for name in names:
        if name not in INTEGRATION_TO_CALLBACK:
            raise CarefError(f"unknown reporter {name!r}; there are: {', '.join(INTEGRATION_TO_CALLBACK)}")
        if name not in get_available_reporting_integrations():
            raise CarefError(f"the reporter {name!r} is not installed; install its package, or leave it out")


@contextmanager
def reporters_write_to(folder: Path) -> Iterator[None]:
    """Keep what TensorBoard, W&B and MLflow write inside the run, unless the user has said where."""
    places = {
        "TENSORBOARD_LOGGING_DIR": str(folder / "tensorboard"),
        "WANDB_DIR": str(folder),
        "MLFLOW_TRACKING_URI": (folder / "mlruns").resolve().as_uri(),
    }
    ours = {name: place for name, place in places.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)
