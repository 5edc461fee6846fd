from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def samples() -> Path:
    """Small data sets of our own writing, in the formats of the releases."""
    return Path(__file__).resolve().parents[1] / "data" / "samples"
