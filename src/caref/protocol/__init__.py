"""The few-shot protocol: which examples a model is trained on, and which it is evaluated on."""

from __future__ import annotations

from caref.protocol.seeds import FEB_SEEDS, parse_splits
from caref.protocol.split import EVAL_SIZE, SHOTS, Split, draw_split

__all__ = ["EVAL_SIZE", "FEB_SEEDS", "SHOTS", "Split", "draw_split", "parse_splits"]
