"""What has to be known before anything else is imported: how the tests meet Triton and the cache."""

from __future__ import annotations

import importlib.util
import os

import torch

# Where there is no GPU, Triton's kernels run in its interpreter. It decides when it is imported, which
# transformers does in passing.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# Its examples are run as tests, for which it would be imported.
collect_ignore = [] if importlib.util.find_spec("triton") else ["src/caref/kernels/triton_rows.py"]

# What a user keeps on disk is neither read nor written.
os.environ["CAREF_CACHE"] = "off"
