"""``caref data``: check and show a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from caref.cli import told_plainly
from caref.cli.flags import with_setting_flags

app = typer.Typer(no_args_is_help=True)

Task = Annotated[str, typer.Argument(help="A task's name (caref list tasks) or your own task's YAML file.")]
Data = Annotated[Path | None, typer.Option(help="Folder of the data files; without it, the hub's copy.")]
DataFormat = Annotated[str | None, typer.Option(help="One of the task's file formats.")]


_NEXT_LINE = "\n" + " " * 14
"""A text of several lines stays in its column."""


@app.command()
@told_plainly
@with_setting_flags(sections={"task_settings"})
def check(
    task: Task,
    data: Data = None,
    data_format: DataFormat = None,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Count unreadable rows instead of stopping at them.")
    ] = False,
    *,
    settings: dict[str, Any],
) -> None:
    """Read every part; name what is wrong with file and line; count rows, labels and lengths."""
    from collections import Counter

    from caref.cli.tables import print_table
    from caref.tasks import get_task

    the_task = get_task(task, settings)
    rows = []
    for part in the_task.parts:
        pool = the_task.load(data, part, data_format=data_format, skip_bad_rows=skip_bad_rows)
        labels = Counter(example.answer for example in pool)
        words = sorted(len(text.split()) for example in pool for text in example.explanations)
        counted = ", ".join(f"{label} {labels[label]:,}" for label in the_task.labels)
        spread = f"{words[0]} to {words[-1]}, median {words[len(words) // 2]}" if words else "none"
        rows.append(
            [
                part,
                pool.data_format,
                counted or "each example has its own choices",
                f"{len(pool):,}",
                f"{len(words):,}",
                spread,
                str(len(pool.problems)),
            ]
        )
        for problem in pool.problems:
            typer.echo(str(problem), err=True)
    print_table(
        ["part", "format", "answers", "examples", "explanations", "words in each", "bad rows"],
        rows,
        text_columns=3,
    )


@app.command()
@told_plainly
@with_setting_flags(sections={"task_settings"})
def show(
    task: Task,
    data: Data = None,
    part: Annotated[str, typer.Option(help="train, validation or test.")] = "validation",
    prompt: Annotated[str, typer.Option(help="feb, instruction, chat, or a YAML file.")] = "feb",
    count: Annotated[int, typer.Option(min=1, help="How many examples.")] = 3,
    split: Annotated[
        int | None, typer.Option(help="Of this FEB split's draw, instead of the first ones.")
    ] = None,
    data_format: DataFormat = None,
    *,
    settings: dict[str, Any],
) -> None:
    """Print examples as a model sees them: input, target, candidates, references."""
    from caref.errors import CarefError
    from caref.experiments.assembly import drawn_split, prompt_format
    from caref.experiments.resources import Resources
    from caref.experiments.spec import RunSpec
    from caref.protocol.seeds import FEB_SEEDS, parse_splits
    from caref.tasks.pool import PARTS

    if part not in PARTS:
        raise CarefError(f"unknown part {part!r}; there are: {', '.join(PARTS)}")
    if split is not None and part == "test":
        raise CarefError("a split draws from train and validation, not from test")
    seed = FEB_SEEDS[parse_splits(str(split))[0]] if split is not None else 0
    spec = RunSpec(
        task=task,
        task_settings=settings,
        data=str(data) if data else None,
        data_format=data_format,
        prompt=prompt,
        seed=seed,
        model="",
    )
    resources = Resources()
    template = prompt_format(spec, resources)
    if split is None:
        examples = resources.pool(spec, part).examples
    else:
        examples = getattr(drawn_split(spec, resources), part)
    for example in examples[:count]:
        shown = template.render(example)
        typer.secho(example.id, bold=True)
        told = [("input", shown.input), ("target", shown.target)]
        told += [("candidates", " | ".join(shown.candidates) or "none: any answer")]
        told += [("reference", text) for text in example.explanations]
        for name, text in told:
            typer.echo(f"  {name:<10}  {text.replace(chr(10), _NEXT_LINE)}")
