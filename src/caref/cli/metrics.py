"""``caref metrics``: what the automatic metrics are worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from caref.cli import told_plainly
from caref.cli.flags import with_setting_flags

if TYPE_CHECKING:
    from caref.human.validation import Validation

app = typer.Typer(no_args_is_help=True)


@app.callback()
def metrics() -> None:
    """What the automatic metrics are worth."""


@app.command()
@told_plainly
@with_setting_flags(sections=frozenset({"metric_settings"}))
def validate(
    *,
    ratings: Annotated[
        Path,
        typer.Option(help="FEB's folder human_eval, which holds results and batches.", show_default=False),
    ],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the data sets, for the references that the raters did not see."),
    ] = None,
    draws: Annotated[
        int, typer.Option(min=0, metavar="<int>", help="Of the bootstrap; 0 gives no intervals.")
    ] = 1000,
    output: Annotated[
        Literal["text", "json", "markdown"], typer.Option("--format", help="How to print it.")
    ] = "text",
    settings: dict[str, Any],
) -> None:
    """Hold every automatic metric against people's ratings of the same explanations.

    Rank correlations, agreement, AUC for gold against generated, and what a difference in nBERT can mean.

    Without --data, what compares with references has no AUC: a gold explanation is its own reference.

    A metric whose encoder cannot be had is left out, unless the encoder was named.
    """
    import json

    from caref.cli.progress import counted
    from caref.experiments.evaluating import Evaluator
    from caref.human.ratings import read_ratings
    from caref.human.validation import validate as hold
    from caref.metrics.bertscore import ScoreCache

    questions = read_ratings(ratings)
    evaluator = Evaluator.make(None, settings, cache=ScoreCache.default())
    with counted("embedding and comparing explanations") as told:
        found = hold(
            questions,
            evaluator.metrics,
            data=data,
            left_out=evaluator.left_out,
            draws=draws,
            on_progress=told,
        )
    if output == "json":
        typer.echo(json.dumps(found.as_json(), indent=2, allow_nan=False))
    else:
        _print(found, markdown=output == "markdown")


def _print(found: Validation, *, markdown: bool) -> None:
    from caref.cli.tables import console, markdown_table, print_table
    from caref.human.conclusion import conclusion
    from caref.human.tables import left_out, sections

    heading = "## " if markdown else ""
    out = console()

    def paragraph(text: str) -> None:
        if markdown:
            typer.echo(f"{text}\n")
        else:
            out.print(text, soft_wrap=True, markup=False)

    for each in sections(found):
        paragraph(f"{heading}{each.title}")
        if markdown:
            paragraph(markdown_table(each.headings, each.rows, text_columns=each.text_columns))
        else:
            print_table(each.headings, each.rows, text_columns=each.text_columns)
        for line in each.told:
            paragraph(line)
        if not markdown:
            out.print()
    paragraph(f"{heading}What a difference in nBERT can mean")
    paragraph(" ".join(conclusion(found.differences)))
    paragraph(f"{heading}Left out")
    for line in left_out(found.left_out):
        out.print(f"- {line}", soft_wrap=True, markup=False)
