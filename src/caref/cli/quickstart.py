"""``caref quickstart``: train, answer, explain and measure once, offline."""

from __future__ import annotations

import importlib.resources
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caref.cli import told_plainly

if TYPE_CHECKING:
    from caref.results.run_directory import RunDirectory

OBJECTIVES = ("ce", "caref")
SEEDS = (1, 2)
FILES = ("everyday.yaml", "train.jsonl", "validation.jsonl")
SETTINGS: dict[str, Any] = {
    "method": "aq",
    "shots": 32,
    "eval_size": 24,
    "epochs": 3,
    "batch_size": 8,
    "learning_rate": 1e-2,
    "max_new_tokens": 24,
}


@told_plainly
def quickstart(
    out: Annotated[Path, typer.Option(help="Folder for the data, the model and the runs.")] = Path(
        "quickstart"
    ),
) -> None:
    """Train, answer and explain once, offline.

    Needs no network, no GPU and no data: the sentences come with the package, and a tiny model is made
    on the spot. It shows that everything works together and what is written where; its numbers say
    nothing about the method.
    """
    data, model, runs = out / "data", out / "tiny-t5", out / "runs"
    data.mkdir(parents=True, exist_ok=True)

    import torch

    from caref.cli.progress import watched
    from caref.cli.tables import print_rows
    from caref.experiments.flat import spec_from_flat
    from caref.experiments.resources import Resources
    from caref.experiments.series import missing_runs, run_series
    from caref.quickstart.model import write_tiny_t5
    from caref.results.run_directory import RunDirectory
    from caref.results.table import aggregate
    from caref.tasks import get_task

    # Of matrices this small a second thread takes more time than it saves.
    torch.set_num_threads(1)
    packaged = importlib.resources.files("caref.quickstart")
    for name in FILES:
        with importlib.resources.as_file(packaged / name) as file:
            shutil.copyfile(file, data / name)
    task = get_task(str(data / FILES[0]))
    prompts = [task.prompts["feb"].render(example) for example in task.load(None, "train")]
    typer.echo(f"making a tiny model from {len(prompts)} sentences")
    write_tiny_t5([(prompt.input, prompt.target) for prompt in prompts], model)

    settings = {**SETTINGS, "task": str(data / FILES[0]), "model": str(model), **_metrics()}
    specs = [
        spec_from_flat({**settings, "objective": objective, "seed": seed})
        for objective in OBJECTIVES
        for seed in SEEDS
    ]
    resources = Resources()
    missing = len(missing_runs(specs, runs))
    with watched(runs=missing, already=len(specs) - missing) as progress:
        results = run_series(specs, runs, resources=resources, progress=progress)
    print_rows(aggregate((result, spec.setting_id) for result, spec in zip(results, specs, strict=True)))
    _show_examples(RunDirectory(runs / specs[-1].directory_name))
    typer.echo(
        "\nThis model is tiny, and its weights were random a minute ago: from a few dozen sentences it has"
        "\nlearnt the form of an answer and no more. The numbers show that the parts work together, not how"
        "\ngood the method is."
    )
    typer.echo(f"written to {out}; the table again: caref table {runs}")


def _metrics() -> dict[str, Any]:
    """The metrics that can be computed without a network."""
    from caref.errors import MissingExtraError
    from caref.metrics.encoders import offline_encoder

    try:
        offline_encoder()
    except MissingExtraError as error:
        typer.echo(f"nBERT is left out: {error}")
        return {"metrics": ("accuracy", "broken", "answer_confidence")}
    return {"encoder": "offline"}


def _show_examples(run: RunDirectory, count: int = 3) -> None:
    """Print a run's first predictions beside what they should have been."""
    typer.echo(f"\n{count} examples from {run.path}")
    for prediction in run.read_predictions()[:count]:
        typer.echo(f"\n  asked      {prediction.input}")
        typer.echo(f"  expected   {prediction.gold_label} because {prediction.gold_explanations[0]}")
        typer.echo(f"  generated  {' '.join(prediction.text.split()) or '(nothing)'}")
