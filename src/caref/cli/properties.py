"""``caref properties``: the paper's table of regularizers, measured."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from caref.cli import told_plainly


@told_plainly
def properties(
    objective: Annotated[
        list[str] | None, typer.Option(help="Only this objective; may be given several times.")
    ] = None,
    output: Annotated[
        Literal["text", "json", "markdown"], typer.Option("--format", help="How to print it.")
    ] = "text",
) -> None:
    """Measure the properties of objectives.

    Differentiable: the gradient is the value's derivative and does not jump. Sparse: support or tail
    shrink when the penalty alone is minimised. Adaptive: a token's gradient depends on more than its own
    probability and the entropy. Architecture-free: nothing but logits and labels is needed.

    Where the paper says otherwise, its verdict stands beside. docs/objective.md tells how each is measured.
    """
    from caref.cli.tables import console, markdown_table, print_table
    from caref.properties.table import cells, headings, measure

    rows = measure(objective)
    if output == "json":
        import json

        typer.echo(json.dumps([row.as_json() for row in rows], indent=2))
        return
    table = [cells(row, with_evidence=output == "markdown") for row in rows]
    if output == "markdown":
        typer.echo(markdown_table(headings(), table, text_columns=len(headings())))
        return
    print_table(headings(), table, text_columns=len(headings()))
    out = console()
    for row in rows:
        out.print(f"\n{row.objective}", markup=False)
        for name, finding in zip(headings()[2:], row.findings.values(), strict=True):
            out.print(f"  {name}: {finding.verdict}; {finding.evidence}", soft_wrap=True, markup=False)
