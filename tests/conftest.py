"""Fixtures for every test: where the shared real data is, if anywhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the real data sets and the two small models; skips where it is absent."""
    folder = Path(os.environ.get("CAREF_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data: {folder} is absent (set CAREF_SHARED)")
    return folder
