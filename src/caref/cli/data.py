"""``caref data``: check and show a data set."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caref.cli import told_plainly
from caref.cli.flags import with_setting_flags

if TYPE_CHECKING:
    from caref.tasks.example import GroundTruth, Mention

app = typer.Typer(no_args_is_help=True)

Task = Annotated[str, typer.Argument(help="A task's name (caref list tasks) or your own task's YAML file.")]
Data = Annotated[Path | None, typer.Option(help="Folder of the data files; without it, the hub's copy.")]
DataFormat = Annotated[str | None, typer.Option(help="One of the task's file formats.")]


_NEXT_LINE = "\n" + " " * 15
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
    """Print examples as a model sees them, with the ground truth of those that have one."""
    if task == "starter":
        typer.echo(
            "The starter world is listed by: caref data world. Its tasks: caref data show starter_nli,"
        )
        typer.echo("starter_choice3, starter_choice5 or starter_nonsense.")
        return
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
        if example.truth:
            told += _truth_lines(example.truth)
        for name, text in told:
            typer.echo(f"  {name:<11}  {text.replace(chr(10), _NEXT_LINE)}")


@app.command()
@told_plainly
def world(
    kind: Annotated[str | None, typer.Option(help="Only things of this kind: bird.")] = None,
    thing: Annotated[str | None, typer.Option(help="Only this thing: owl.")] = None,
) -> None:
    """List the starter world: every fact as a sentence, thing by thing, then every template."""
    from caref.errors import UnknownNameError
    from caref.tasks.starter.listing import fact_lines, template_lines
    from caref.tasks.starter.world import load_world

    the_world = load_world()
    if kind is not None and kind not in the_world.kinds:
        raise UnknownNameError(f"unknown kind {kind!r}; there are: {', '.join(the_world.kinds)}")
    if thing is not None and thing not in the_world.things:
        raise UnknownNameError(f"unknown thing {thing!r}; see: caref data world")
    lines = list(fact_lines(the_world, kind=kind, thing=thing))
    if kind is None and thing is None:
        lines += template_lines()
    for line in lines:
        typer.secho(line, bold=not line.startswith(" "))


def _truth_lines(truth: GroundTruth) -> list[tuple[str, str]]:
    """Why the answer is right, as names and texts to print."""
    told = [("causes", _mentions(truth.causes)), ("distractors", _mentions(truth.distractors))]
    for fact in truth.facts:
        told.append(("fact" if fact.holds else "false", " | ".join(fact[:3])))
    return told + ([("cue", _mentions((truth.cue,)))] if truth.cue else [])


def _mentions(mentions: Iterable[Mention]) -> str:
    return " | ".join(f"{each.field}: {each.text}" for each in mentions) or "none"
