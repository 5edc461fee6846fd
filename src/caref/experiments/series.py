"""Several runs, one after the other or some at once; the same call again does only what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from caref.errors import CarefError
from caref.experiments.assembly import check_positions, drawn_split, make_encoder, make_objective
from caref.experiments.evaluating import MADE_UP
from caref.experiments.processes import process_count
from caref.experiments.progress import Progress, Silent
from caref.experiments.resources import Resources
from caref.experiments.run import RunOptions, execute
from caref.experiments.spec import RunSpec
from caref.experiments.workers import execute_in_workers
from caref.results.result import RunResult
from caref.results.run_directory import RunDirectory

if TYPE_CHECKING:
    from caref.models.encoding import Encoder


def missing_runs(specs: Sequence[RunSpec], root: Path) -> list[RunSpec]:
    """Those whose result is not there yet."""
    return [spec for spec in specs if not RunDirectory(root / spec.directory_name).is_complete]


def check_specs(specs: Sequence[RunSpec], resources: Resources, *, fused: str = "auto") -> None:
    """Find what is wrong with any of the specs before the first hour of work, not after it.

    Reads the data, draws every split and tokenizes its shots, reads the models' configurations, and
    computes every metric of one made-up prediction, which loads its encoder.

    Args:
        specs: Of the runs to come.
        resources: Data and encoders, which the runs will use again.
        fused: How the objectives will be computed.

    Raises:
        CarefError: On the first thing that is wrong.
    """
    from caref.methods import METHODS
    from caref.models.loading import ModelSource, empty_model, load_config
    from caref.training.train import check_trainable

    encoders: dict[str, Encoder] = {}
    for spec in specs:
        split = drawn_split(spec, resources)
        if spec.setting_id not in encoders:
            config = load_config(ModelSource(spec.model, spec.trust_remote_code))
            model = METHODS.get(spec.method)(**spec.method_settings).apply(empty_model(config))
            encoder = make_encoder(spec, resources, config)
            check_positions(spec, encoder, model)
            check_trainable(model, spec.training, make_objective(spec, encoder, fused=fused))
            for metric in resources.metrics(spec):
                metric.compute([MADE_UP])
            encoders[spec.setting_id] = encoder
        encoders[spec.setting_id].encode_all(split.train)


def run_series(
    specs: Sequence[RunSpec],
    root: Path,
    *,
    options: RunOptions | None = None,
    resources: Resources | None = None,
    progress: Progress | None = None,
    workers: int = 1,
    threads: int | None = None,
) -> list[RunResult]:
    """Carry out what is missing, and give the results of all.

    Several workers help where one run cannot keep all cores busy. A run gives the same in a worker as it
    does here, with the same number of threads.

    Args:
        specs: In the order in which they are to be run.
        root: The folder of the run directories.
        options: How to run.
        resources: Data and encoders, kept between the runs; workers have their own.
        progress: Told of the runs that are carried out.
        workers: Processes that carry out runs at the same time. With more than one, a script has to call
            this under ``if __name__ == "__main__"``, as `multiprocessing` asks for.
        threads: CPU threads of each worker; None shares out the cores.

    Raises:
        CarefError: On the first run that fails, or if workers are asked for under ``torchrun``.
    """
    resources, progress = resources or Resources(), progress or Silent()
    if workers > 1:
        if process_count() > 1:
            raise CarefError(f"{process_count()} processes share each run already; leave workers at 1")
        missing = missing_runs(specs, root)
        if missing:
            execute_in_workers(
                missing, root, workers=workers, threads=threads, options=options, progress=progress
            )
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
