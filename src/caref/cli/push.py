"""``caref push``: a trained run on the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caref.cli import told_plainly


@told_plainly
def push(
    run: Annotated[Path, typer.Argument(help="The directory of a complete run.")],
    repository: Annotated[str, typer.Argument(help="owner/name on the hub; made if it is not there.")],
    merge: Annotated[
        bool, typer.Option("--merge", help="Put the adapter into the base model: a plain model.")
    ] = False,
    base_id: Annotated[
        str | None, typer.Option(help="The base model's hub id, where the run found it in a folder.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="A repository that is made is private.")] = False,
    model: Annotated[
        str | None, typer.Option(help="The base model, where it has moved since the run.")
    ] = None,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let code from the model's repository run.")
    ] = False,
) -> None:
    """Send weights, tokenizer and model card.

    You have to be logged in: hf auth login, or a token in HF_TOKEN.
    """
    from caref.experiments import exporting
    from caref.experiments.saved import SavedRun

    saved = SavedRun.find(run, base_model=model, trust_remote_code=trust_remote_code)
    address = exporting.push(saved, repository, merge=merge, base_id=base_id, private=private)
    typer.echo(f"sent to {address}")
