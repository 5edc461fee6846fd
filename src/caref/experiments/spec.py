"""Everything that one run depends on: one frozen value, whose hash is the run's id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from caref.errors import CarefError, DataError
from caref.protocol.seeds import FEB_SEEDS
from caref.results.run_directory import RunDirectory
from caref.training.settings import TrainingSettings

Supervision = Literal["answer_and_explanation", "answer_only"]

DEFAULT_METRICS = (
    "accuracy",
    "broken",
    "nbert",
    "answer_confidence",
    "nll",
    "calibration_error",
    "auroc",
    "temperature",
)


class RunSpec(BaseModel):
    """One training and its evaluation.

    Settings of task, objective, method and metrics are complete: `resolve_spec` fills in the defaults.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    task: str = Field(description="a task's name (caref list tasks) or your own task's YAML file")
    task_settings: dict[str, Any] = Field(default_factory=dict)
    data: str | None = Field(None, description="folder of the data files; without it, the copy on the hub")
    data_format: str | None = Field(None, description="one of the task's file formats; else the first found")
    skip_bad_rows: bool = Field(False, description="go on without unreadable rows, and count them")
    model: str = Field(description="a language model's directory or hub id, or starter (comes with caref)")
    trust_remote_code: bool = Field(False, description="let code from the model's repository run")
    method: str = Field("aq", description="which weights move (caref list methods)")
    method_settings: dict[str, Any] = Field(default_factory=dict)
    objective: str = Field("caref", description="the loss (caref list objectives)")
    objective_settings: dict[str, Any] = Field(default_factory=dict)
    supervision: Supervision = Field(
        "answer_and_explanation", description="train on the explanation too, or on the answer alone"
    )
    prompt: str = Field("feb", description="one of feb, instruction, chat, or your own prompt's YAML file")
    seed: int = Field(FEB_SEEDS[0], ge=0, lt=2**32, description="of the draw and of the training")
    shots: int = Field(48, ge=1, description="training examples, over all labels together")
    eval_size: int = Field(350, ge=1, description="evaluated examples, over all labels together")
    preset: str = Field("fewshot", description="training settings to start from: fewshot, paper, feb")
    training: TrainingSettings = Field(default_factory=TrainingSettings)
    max_new_tokens: int = Field(100, ge=1, description="decoding ends here at the latest")
    confidence: bool = Field(True, description="score the candidate answers, for the confidence")
    metrics: tuple[str, ...] = Field(DEFAULT_METRICS, description="metrics to compute, separated by commas")
    metric_settings: dict[str, Any] = Field(default_factory=dict)
    file_hashes: dict[str, str] = Field(
        default_factory=dict,
        description="SHA-256 of your own task's, data's, prompt's and adapter configuration's files",
    )

    @field_validator("metrics")
    @classmethod
    def _each_once(cls, metrics: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(metrics))

    @model_validator(mode="after")
    def _answers_are_there(self) -> RunSpec:
        if self.supervision == "answer_only" and self.objective_settings.get("span", "all") != "all":
            raise ValueError("span needs the separator in the targets, which answer_only leaves out")
        if self.objective_settings.get("reduction") == "none":
            raise ValueError("reduction none gives a loss per token; training needs mean or sum")
        return self

    def canonical_json(self) -> str:
        """The same text for equal specs, whatever their origin."""
        return json.dumps(
            self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), allow_nan=False
        )

    @property
    def run_id(self) -> str:
        """The first 16 hexadecimal digits of the hash of the canonical JSON."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()[:16]

    @property
    def setting_id(self) -> str:
        """The same for all splits of one setting: a hash of everything but the seed."""
        without_seed = self.model_dump(mode="json", exclude={"seed"})
        return hashlib.sha256(json.dumps(without_seed, sort_keys=True).encode()).hexdigest()[:8]

    def with_seed(self, seed: int) -> RunSpec:
        """The same setting with another seed.

        Raises:
            CarefError: If the seed is out of range.
        """
        try:
            return RunSpec.model_validate({**self.model_dump(), "seed": seed})
        except ValidationError as error:
            raise CarefError(in_one_line(error)) from error

    @property
    def directory_name(self) -> str:
        """A name a person can read, and the id."""
        parts = (Path(self.task).stem, Path(self.model).name, self.method, self.objective, f"seed{self.seed}")
        return "_".join([*parts, self.run_id])


def resolve_spec(**given: Any) -> RunSpec:
    """A complete spec from the settings that were given.

    Args:
        **given: Fields of `RunSpec`. ``training`` may hold some of the settings: they are put over
            the preset's. ``task_settings``, ``method_settings``, ``objective_settings`` and
            ``metric_settings`` likewise over the entries' defaults.

    Raises:
        CarefError: If a name is unknown or a value does not fit, in one line.
    """
    from caref.losses import OBJECTIVES
    from caref.methods import METHODS
    from caref.settings import resolved_settings
    from caref.tasks import Task, task_entry
    from caref.training.settings import preset

    try:
        draft = RunSpec.model_validate({**given, "training": {}})
        task = task_entry(draft.task)
        method, objective = METHODS.get(draft.method), OBJECTIVES.get(draft.objective)
        task_settings = resolved_settings("task", draft.task, task, draft.task_settings)
        method_settings = resolved_settings("method", draft.method, method, draft.method_settings)
        objective_settings = resolved_settings(
            "objective", draft.objective, objective, draft.objective_settings
        )
        spec = RunSpec.model_validate(
            {
                **given,
                "training": preset(draft.preset, **dict(given.get("training", {}))),
                "task_settings": task_settings,
                "method_settings": method_settings,
                "objective_settings": objective_settings,
                "metric_settings": resolved_metric_settings(draft.metrics, draft.metric_settings),
                "file_hashes": _file_hashes(draft),
            }
        )
    except ValidationError as error:
        raise CarefError(in_one_line(error)) from error
    if not isinstance(task, Task):
        _check_ranges(task, task_settings)
    _check_ranges(method, method_settings)
    _check_ranges(objective, {**objective_settings, "separator_ids": [0]})
    return spec


def _check_ranges(entry: Callable[..., object], settings: dict[str, Any]) -> None:
    """Let an entry check its own settings, now rather than when the model is loaded."""
    try:
        entry(**settings)
    except ValueError as error:
        raise CarefError(str(error)) from error


def _file_hashes(spec: RunSpec) -> dict[str, str]:
    """The content of the user's own files decides a run as much as their names do."""
    files = [Path(name) for name in (spec.task, spec.prompt) if Path(name).suffix in (".yaml", ".yml")]
    if adapter := spec.method_settings.get("peft_config_file"):
        files.append(Path(adapter))
    files = [file for file in files if file.is_file()]
    if Path(spec.task) in files:
        files += _data_files(spec)
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _data_files(spec: RunSpec) -> list[Path]:
    """The data of the user's own task, as far as it is there; reading it tells what is missing."""
    from caref.tasks import get_task

    task = get_task(spec.task, spec.task_settings)
    folder = Path(spec.data) if spec.data else task.home or Path()
    found: list[Path] = []
    for part in task.parts:
        with suppress(CarefError):
            files = task.find(folder, part, data_format=spec.data_format)[1]
            found += [file for role in files.values() for file in role]
    return sorted(set(found))


def resolved_metric_settings(metrics: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
    """The settings that these metrics declare, together; two that share a name share the value.

    Raises:
        CarefError: If one is given that none of them has.
    """
    from caref.metrics import METRICS
    from caref.settings import declared_settings, resolved_settings

    entries = {name: METRICS.get(name) for name in metrics}
    declared = {key for entry in entries.values() for key in declared_settings(entry)}
    for key in given:
        if key not in declared:
            raise CarefError(f"{key!r} is a setting of none of the metrics {', '.join(metrics)}")
    resolved: dict[str, Any] = {}
    for name, entry in entries.items():
        own = {key: value for key, value in given.items() if key in declared_settings(entry)}
        resolved |= resolved_settings("metric", name, entry, own)
    return resolved


def read_run_spec(directory: RunDirectory) -> RunSpec:
    """What a run was asked to do.

    Raises:
        DataError: If its ``spec.json`` cannot be read, or does not fit this version of caref.
    """
    content = directory.read_spec()
    try:
        return RunSpec.model_validate(content)
    except ValidationError as error:
        raise DataError(
            f"{directory.spec_path} does not fit this version of caref: {in_one_line(error)}"
        ) from error


def in_one_line(error: ValidationError) -> str:
    """The first of the things that pydantic found wrong."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        return f"unknown setting {where!r}; see: caref run --help"
    if first["type"] == "literal_error":
        return f"{where} must be one of {first['ctx']['expected']}, got {first['input']!r}"
    if first["type"] == "missing":
        return f"{where} is missing; see: caref run --help"
    return f"{where}: {message}, got {first['input']!r}" if where else message
