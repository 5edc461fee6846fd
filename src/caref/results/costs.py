"""What a complete run took: time, memory, and the size of what it left."""

from __future__ import annotations

from caref.results.run_directory import RunDirectory

MIB = 2**20


def run_costs(directory: RunDirectory) -> dict[str, float]:
    """The costs of one complete run.

    Returns:
        ``trainable_percent``: parameters trained, in percent of the model as trained; ``seconds``: wall clock
        of all stages; ``peak_mib``: the largest resident memory of the process, or of the accelerator where
        there was one, in MiB; ``saved_mib``: the weights on disk in MiB, where they were kept.

    Raises:
        DataError: If the run is not complete or cannot be read.
    """
    result, environment = directory.read_result(), directory.read_environment()
    peaks = environment["peak_device_mib"] or environment["peak_mib"]
    costs = {
        "trainable_percent": 100 * result.trainable_parameters / result.total_parameters,
        "seconds": sum(environment["seconds"].values()),
        "peak_mib": max(peaks.values()),
    }
    saved = [
        file.stat().st_size
        for folder in (directory.adapter_path, directory.model_path)
        for file in folder.glob("*.safetensors")
    ]
    return {**costs, "saved_mib": sum(saved) / MIB} if saved else costs
