"""``caref run``: train and evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from caref.cli import told_plainly
from caref.cli.flags import with_setting_flags
from caref.errors import CarefError


@told_plainly
@with_setting_flags(leave_out=frozenset({"seed"}))
def run(
    *,
    config: Annotated[
        Path | None, typer.Option(help="YAML file of settings, named as the flags; flags win over it.")
    ] = None,
    splits: Annotated[
        str | None, typer.Option(help="FEB's splits, 0 to 59: 0-4, 3,7 or all.", show_default="0")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="Your own seeds instead of FEB's: 1,2,3.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the run directories.")] = Path("runs"),
    eval_batch_size: Annotated[int, typer.Option(min=1, help="Examples decoded at once.")] = 64,
    report_to: Annotated[str, typer.Option(help="The Trainer's reporters: tensorboard,wandb,mlflow.")] = "",
    save_adapter: Annotated[bool, typer.Option(help="Keep the trained weights.")] = True,
    settings: dict[str, Any],
) -> None:
    """Train and evaluate.

    Every split is trained, evaluated and written to a folder of its own under --out. A run that is
    complete is not done again: the same command, started anew, does what is missing.
    """
    from caref.cli.progress import watched
    from caref.cli.tables import print_rows
    from caref.experiments.flat import spec_from_flat
    from caref.experiments.resources import Resources
    from caref.experiments.run import RunOptions
    from caref.experiments.series import check_specs, missing_runs, run_series
    from caref.results.table import aggregate

    asked = {**_read_config(config), **settings}
    in_file = {name: asked.pop(name, None) for name in ("splits", "seeds")}
    chosen = _seeds(splits, seeds) if splits or seeds else _seeds(**in_file)
    first = spec_from_flat({**asked, "seed": chosen[0]})
    specs = [first.model_copy(update={"seed": seed}) for seed in chosen]
    resources = Resources()
    missing = missing_runs(specs, out)
    if missing:
        check_specs(missing, resources)
    options = RunOptions(
        eval_batch_size=eval_batch_size,
        report_to=tuple(name.strip() for name in report_to.split(",") if name.strip()),
        save_adapter=save_adapter,
    )
    with watched(runs=len(missing), already=len(specs) - len(missing)) as progress:
        results = run_series(specs, out, options=options, resources=resources, progress=progress)
    print_rows(aggregate((result, first.setting_id) for result in results))
    typer.echo(f"written to {out}; all of it again: caref table {out}")


def _read_config(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CarefError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise CarefError(f"{path} must hold settings by name, such as 'task: esnli'")
    return {str(name).replace("-", "_"): value for name, value in content.items()}


def _seeds(splits: object, seeds: object) -> list[int]:
    from caref.protocol.seeds import FEB_SEEDS, parse_splits

    if splits is not None and seeds is not None:
        raise CarefError("give either splits (FEB's) or seeds (your own), not both")
    if seeds is None:
        return [FEB_SEEDS[split] for split in parse_splits("0" if splits is None else str(splits))]
    words = [str(seed) for seed in seeds] if isinstance(seeds, list) else str(seeds).split(",")
    if not all(word.strip().isdigit() for word in words):
        raise CarefError(f"seeds must be whole numbers separated by commas, got {seeds!r}")
    return list(dict.fromkeys(int(word) for word in words))
