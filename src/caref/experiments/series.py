"""Several runs, one after the other; the same call again does only what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from caref.experiments.progress import Progress, Silent
from caref.experiments.resources import Resources
from caref.experiments.run import RunOptions, drawn_split, execute, prompt_format
from caref.experiments.spec import RunSpec
from caref.results.result import RunResult
from caref.results.run_directory import RunDirectory


def missing_runs(specs: Sequence[RunSpec], root: Path) -> list[RunSpec]:
    """Those whose result is not there yet."""
    return [spec for spec in specs if not RunDirectory(root / spec.directory_name).is_complete]


def check_specs(specs: Sequence[RunSpec], resources: Resources) -> None:
    """Find what is wrong with any of the specs before the first hour of work, not after it.

    Reads the data, draws every split, renders the first prompt, and reads the models' configurations.

    Raises:
        CarefError: On the first thing that is wrong.
    """
    from caref.methods import METHODS
    from caref.models.loading import ModelSource, empty_model, load_config

    checked: set[tuple[object, ...]] = set()
    for spec in specs:
        split = drawn_split(spec, resources)
        if (setting := (spec.setting_id,)) not in checked:
            checked.add(setting)
            prompt_format(spec, resources).render(split.train[0])
            model = empty_model(load_config(ModelSource(spec.model, spec.trust_remote_code)))
            METHODS.get(spec.method)(**spec.method_settings).apply(model)


def run_series(
    specs: Sequence[RunSpec],
    root: Path,
    *,
    options: RunOptions | None = None,
    resources: Resources | None = None,
    progress: Progress | None = None,
) -> list[RunResult]:
    """Carry out what is missing, and give the results of all.

    Args:
        specs: In the order in which they are to be run.
        root: The folder of the run directories.
        options: How to run.
        resources: Data and encoders, kept between the runs.
        progress: Told of the runs that are carried out.
    """
    resources, progress = resources or Resources(), progress or Silent()
    results = []
    for spec in specs:
        directory = RunDirectory(root / spec.directory_name)
        if directory.is_complete:
            results.append(directory.read_result())
            continue
        progress.begin_run(directory.path.name)
        results.append(execute(spec, root, options=options, resources=resources, progress=progress))
        progress.end_run()
    return results
