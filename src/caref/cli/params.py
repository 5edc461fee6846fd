"""``caref params``: what each method would train, from a configuration alone."""

from __future__ import annotations

from typing import Annotated

import typer

from caref.cli import told_plainly


@told_plainly
def params(
    model: Annotated[str, typer.Argument(help="A directory, a config.json or a hub id.")],
    method: Annotated[
        list[str] | None, typer.Option(help="Only this method; may be given several times.")
    ] = None,
    rank: Annotated[int | None, typer.Option(min=1, help="LoRA's rank, instead of its default.")] = None,
    target_modules: Annotated[
        str | None, typer.Option(help="A regular expression of module names, for another architecture.")
    ] = None,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let code from the model's repository run.")
    ] = False,
) -> None:
    """Count parameters.

    Percent is of all parameters of the model as trained: an adapter's own included, the frozen
    original of a trained copy not. Nothing is downloaded or allocated but the configuration.
    """
    from caref.cli.tables import print_table
    from caref.methods import METHODS
    from caref.methods.counting import count_for_config
    from caref.models.loading import ModelSource, load_config
    from caref.settings import declared_settings

    source = ModelSource(model, trust_remote_code)
    config = load_config(source)
    rows = []
    given = {"rank": rank, "target_modules": target_modules}
    for name in method or METHODS:
        entry = METHODS.get(name)
        declared = declared_settings(entry)
        settings = {key: value for key, value in given.items() if value is not None and key in declared}
        count = count_for_config(entry(**settings), config)
        told = f", rank {settings.get('rank', declared['rank'].default)}" if "rank" in declared else ""
        rows.append(
            [name, entry.summary + told, f"{count.trainable:,}", f"{count.total:,}", f"{count.percent:.2f}"]
        )
    typer.echo(f"{source.short_name}: parameters that each method trains")
    print_table(["method", "what is trained", "trainable", "of", "percent"], rows, text_columns=2)
