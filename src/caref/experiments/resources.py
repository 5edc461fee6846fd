"""What several runs share, loaded once: data, tokenizers, metrics; not models, which a run changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from caref.experiments.spec import RunSpec
from caref.metrics import METRICS, Metric
from caref.settings import declared_settings
from caref.tasks import Task, get_task
from caref.tasks.pool import Part, Pool

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Resources:
    """A cache that lives as long as a series of runs."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, str], Task] = {}
        self._pools: dict[tuple[object, ...], Pool] = {}
        self._tokenizers: dict[tuple[str, bool], PreTrainedTokenizerBase] = {}
        self._metrics: dict[tuple[object, ...], Metric] = {}

    def pool(self, spec: RunSpec, part: Part) -> Pool:
        """One part of the spec's data."""
        key = (*_task_key(spec), spec.data, spec.data_format, spec.skip_bad_rows, part)
        if key not in self._pools:
            self._pools[key] = self.task(spec).load(
                Path(spec.data) if spec.data else None,
                part,
                data_format=spec.data_format,
                skip_bad_rows=spec.skip_bad_rows,
            )
        return self._pools[key]

    def task(self, spec: RunSpec) -> Task:
        """The spec's task, with its settings."""
        key = _task_key(spec)
        if key not in self._tasks:
            self._tasks[key] = get_task(spec.task, spec.task_settings)
        return self._tasks[key]

    def tokenizer(self, spec: RunSpec) -> PreTrainedTokenizerBase:
        """The tokenizer of the spec's model."""
        from caref.models.loading import ModelSource, load_tokenizer

        key = (spec.model, spec.trust_remote_code)
        if key not in self._tokenizers:
            self._tokenizers[key] = load_tokenizer(ModelSource(*key))
        return self._tokenizers[key]

    def metrics(self, spec: RunSpec) -> list[Metric]:
        """The spec's metrics, with their settings; encoders stay loaded."""
        metrics = []
        for name in spec.metrics:
            entry = METRICS.get(name)
            settings = {key: spec.metric_settings[key] for key in declared_settings(entry)}
            key = (name, *settings.items())
            if key not in self._metrics:
                self._metrics[key] = entry(**settings)
            metrics.append(self._metrics[key])
        return metrics


def _task_key(spec: RunSpec) -> tuple[str, str]:
    """The same for equal tasks with equal settings; a text, as a spec from a file may hold any value."""
    return spec.task, json.dumps(spec.task_settings, sort_keys=True)
