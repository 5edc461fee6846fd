"""``caref run``: train and evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

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
        str | None,
        typer.Option(help="The benchmark's (FEB's) splits, numbered 0 to 59: 0-4 or 3,7 or all. Default: 0."),
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="Your own seeds, instead of FEB's splits: 1,2,3.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder in which every run gets its folder. Default: runs.")
    ] = None,
    eval_batch_size: Annotated[
        int | None, typer.Option(min=1, metavar="<int>", help="Examples decoded at once. Default: 64.")
    ] = None,
    report_to: Annotated[
        str | None, typer.Option(help="Report the training to: tensorboard, wandb, mlflow; commas between.")
    ] = None,
    save_adapter: Annotated[
        bool | None,
        typer.Option(
            "--save-adapter/--no-save-adapter",
            help="Keep the trained weights, which caref predict needs. Default: on.",
        ),
    ] = None,
    fused: Annotated[
        str | None,
        typer.Option(
            help="How the objective is computed: auto, off (the formula as it stands), chunked, compiled or "
            "triton. Default: auto."
        ),
    ] = None,
    settings: dict[str, Any],
) -> None:
    """Train and evaluate.

    Every split is trained, evaluated and written to a folder of its own under --out. A run that is
    complete is not done again: the same command, started anew, does what is missing.
    """
    from caref.cli.progress import watched
    from caref.cli.tables import print_rows
    from caref.experiments.flat import spec_from_flat
    from caref.experiments.processes import is_first_process
    from caref.experiments.resources import Resources
    from caref.experiments.run import RunOptions
    from caref.experiments.series import check_specs, missing_runs, run_series
    from caref.results.table import aggregate
    from caref.training.reporters import check_reporters

    asked = {**_read_config(config), **settings}
    in_file = {name: asked.pop(name, None) for name in ("splits", "seeds")}
    given = {"out": out, "eval_batch_size": eval_batch_size, "report_to": report_to}
    given |= {"save_adapter": save_adapter, "fused": fused}
    how = {name: asked.pop(name, None) if value is None else value for name, value in given.items()}
    root = Path(_of_type(str | Path, "out", how["out"], "runs"))
    options = RunOptions(
        eval_batch_size=_of_type(int, "eval_batch_size", how["eval_batch_size"], 64),
        report_to=_words(how["report_to"]),
        save_adapter=_of_type(bool, "save_adapter", how["save_adapter"], True),
        fused=_fused(how["fused"]),
    )
    by_flag = splits is not None or seeds is not None
    chosen = _seeds(splits, seeds) if by_flag else _seeds(**in_file)
    first = spec_from_flat({**asked, "seed": chosen[0]})
    specs = [first.with_seed(seed) for seed in chosen]
    resources = Resources()
    missing = missing_runs(specs, root)
    if missing:
        typer.echo("reading data, model and metrics", err=True)
        check_reporters(options.report_to)
        check_specs(missing, resources, fused=options.fused)
    if not is_first_process():
        run_series(specs, root, options=options, resources=resources)
        return
    with watched(runs=len(missing), already=len(specs) - len(missing)) as progress:
        results = run_series(specs, root, options=options, resources=resources, progress=progress)
    print_rows(aggregate((result, specs[0].setting_id) for result in results))
    typer.echo(f"written to {root}; to see the table of all its runs: caref table {root}")


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
    settings = {str(name).replace("-", "_"): value for name, value in content.items()}
    if "seed" in settings:
        raise CarefError(f"{path}: seed is the setting of one run; write seeds: [{settings['seed']}]")
    if settings.get("trust_remote_code"):
        raise CarefError(f"{path}: trust_remote_code lets foreign code run; it is taken as a flag only")
    return settings


def _of_type(kind: Any, name: str, value: Any, default: Any) -> Any:
    """An option that is no part of a run's spec, from a flag or a file."""
    if value is None:
        return default
    wrong_bool = isinstance(value, bool) and kind is not bool
    if wrong_bool or not isinstance(value, kind) or (kind is int and value < 1):
        wanted = {bool: "true or false", int: "a whole number from 1"}.get(kind, "a folder")
        raise CarefError(f"{name} must be {wanted}, got {value!r}")
    return value


def _fused(value: object) -> str:
    """YAML 1.1 reads off, without quotes, as false."""
    from caref.losses.objective import Fused

    value = "off" if value is False else "auto" if value is None else value
    if value not in get_args(Fused):
        raise CarefError(f"fused must be one of {', '.join(get_args(Fused))}, got {value!r}")
    return str(value)


def _words(value: object) -> tuple[str, ...]:
    words = value if isinstance(value, list) else str(value or "").split(",")
    return tuple(str(word).strip() for word in words if str(word).strip())


def _seeds(splits: object, seeds: object) -> list[int]:
    from caref.protocol.seeds import FEB_SEEDS, parse_splits

    if splits is not None and seeds is not None:
        raise CarefError("give either splits (FEB's) or seeds (your own), not both")
    if seeds is None:
        text = ",".join(map(str, splits)) if isinstance(splits, list) else str(splits or 0)
        return [FEB_SEEDS[split] for split in parse_splits("" if splits == "" else text)]
    words = [str(seed) for seed in seeds] if isinstance(seeds, list) else str(seeds).split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise CarefError(f"seeds must be whole numbers from 0, separated by commas, got {seeds!r}")
    return list(dict.fromkeys(int(word) for word in words))
