"""``caref params``: what each method would train, from a configuration alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from caref.cli import told_plainly

if TYPE_CHECKING:
    from caref.models.loading import ModelSource


@told_plainly
def params(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Directories, config.json files or hub ids.")
    ],
    method: Annotated[
        list[str] | None, typer.Option(help="Only this method; may be given several times.")
    ] = None,
    rank: Annotated[int | None, typer.Option(min=1, help="LoRA's rank, instead of its default.")] = None,
    target_modules: Annotated[
        str | None, typer.Option(help="A regular expression of module names, for another architecture.")
    ] = None,
    peft_config_file: Annotated[
        str | None, typer.Option(help="An adapter_config.json, for the method peft.")
    ] = None,
    output: Annotated[
        Literal["text", "csv", "json", "markdown"], typer.Option("--format", help="How to print it.")
    ] = "text",
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let code from a model's repository run.")
    ] = False,
) -> None:
    """Count parameters.

    Percent is of all parameters of the model as trained: an adapter's own included, the frozen
    original of a trained copy not. Nothing is downloaded or allocated but the configuration.
    """
    from caref.cli.tables import markdown_table, print_records, print_table
    from caref.models.loading import ModelSource

    given = {"rank": rank, "target_modules": target_modules, "peft_config_file": peft_config_file}
    settings = {name: value for name, value in given.items() if value is not None}
    tables = [_rows(ModelSource(name, trust_remote_code), method, settings) for name in models]
    if output in ("csv", "json"):
        print_records([row for rows in tables for row in rows], output)
        return
    headings = ["method", "what is trained", "trainable", "of", "percent"]
    for number, rows in enumerate(tables):
        cells = [
            [
                row["method"],
                row["trained"],
                f"{row['trainable']:,}",
                f"{row['total']:,}",
                f"{row['percent']:.2f}",
            ]
            for row in rows
        ]
        if number:
            typer.echo()
        model = rows[0]["model"]
        if output == "markdown":
            typer.echo(f"### {model}\n\n{markdown_table(headings, cells, text_columns=2)}")
        else:
            typer.echo(f"{model}: parameters that each method trains")
            print_table(headings, cells, text_columns=2)


def _rows(source: ModelSource, names: list[str] | None, given: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each method: the model, the method, what it trains, and its counts."""
    from caref.methods import METHODS
    from caref.methods.counting import count_for_config
    from caref.models.loading import load_config
    from caref.settings import declared_settings

    config = load_config(source)
    rows = []
    for name in names or METHODS:
        entry = METHODS.get(name)
        declared = declared_settings(entry)
        if not names and "peft_config_file" in declared and "peft_config_file" not in given:
            continue  # it trains nothing without its file
        settings = {key: value for key, value in given.items() if key in declared}
        told = f", rank {settings.get('rank', declared['rank'].default)}" if "rank" in declared else ""
        count = count_for_config(entry(**settings), config)
        rows.append(
            {
                "model": source.short_name,
                "method": name,
                "trained": entry.summary + told,
                "trainable": count.trainable,
                "total": count.total,
                "percent": count.percent,
            }
        )
    return rows
