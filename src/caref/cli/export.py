"""``caref export``: a trained run for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caref.cli import told_plainly


@told_plainly
def export(
    run: Annotated[Path, typer.Argument(help="The directory of a complete run.")],
    out: Annotated[Path, typer.Argument(help="The folder to make.")],
    merge: Annotated[
        bool, typer.Option("--merge", help="Put the adapter into the base model: a plain model.")
    ] = False,
    base_id: Annotated[
        str | None, typer.Option(help="The base model's hub id, to be named in an adapter and its card.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The base model, where it has moved since the run.")
    ] = None,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let code from the model's repository run.")
    ] = False,
) -> None:
    """Write a trained run.

    The folder holds the weights, the tokenizer and a model card; transformers and PEFT load it without caref.
    """
    from caref.experiments import exporting
    from caref.experiments.saved import SavedRun

    saved = SavedRun.find(run, base_model=model, trust_remote_code=trust_remote_code)
    form = exporting.export(saved, out, merge=merge, base_id=base_id)
    size = sum(file.stat().st_size for file in out.glob("*.safetensors"))
    typer.echo(f"{form} written to {out}: {size / 2**20:.1f} MiB of weights; README.md says how to load it")
