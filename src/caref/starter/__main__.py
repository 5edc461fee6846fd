"""``python -m caref.starter``: make the starter model anew, by its recipe."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from caref.experiments.stages import describe_environment
from caref.starter.pretraining import Recipe, pretrain


def main() -> None:
    """Train by the recipe, any of whose numbers a flag may replace."""
    parser = argparse.ArgumentParser(prog="python -m caref.starter", description=main.__doc__)
    parser.add_argument("out", type=Path, help="folder of the model")
    parser.add_argument("--log-every", type=int, default=500, help="steps between two lines of the log")
    for field in dataclasses.fields(Recipe):
        flag = f"--{field.name.replace('_', '-')}"
        parser.add_argument(flag, type=type(field.default), default=field.default)
    given = vars(parser.parse_args())
    out, log_every = given.pop("out"), given.pop("log_every")
    pretrain(Recipe(**given), out, environment=describe_environment(), log_every=log_every)


if __name__ == "__main__":
    main()
