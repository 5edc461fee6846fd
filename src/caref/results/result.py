"""What a complete run says: one value, ``result.json``."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class MetricRecord(BaseModel):
    """One metric's values with what they were computed by."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    values: dict[str, float | None] = Field(description="name to value; None where undefined")
    notes: dict[str, str] = Field(default_factory=dict, description="why a value is undefined")
    intervals: dict[str, tuple[float, float]] = Field(
        default_factory=dict, description="95 % bootstrap interval over examples, where there is one"
    )
    fingerprint: dict[str, Any] = Field(
        default_factory=dict, description="encoder, layer, options and versions behind the numbers"
    )
    columns: tuple[str, ...] = Field(default=(), description="its per-example values in scores.jsonl")


class RunIdentity(BaseModel):
    """Which run: what it was made of, in short."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    run_id: str = Field(description="hash of the resolved spec")
    task: str
    model: str = Field(description="short name of the base model")
    method: str
    objective: str
    supervision: str
    prompt: str
    seed: int
    split_checksum: str = Field(description="of the drawn examples' ids")


class RunResult(RunIdentity):
    """The outcome of one run.

    Two runs may be compared where their `split_checksum` and the metrics' fingerprints agree.
    """

    data_format: str = Field(description="which of the task's file formats was read")
    problems_skipped: int = Field(description="unreadable rows that the caller chose to skip")
    train_examples: int
    evaluated_examples: int
    inputs_cut: int = Field(description="inputs whose context was shortened, of both parts")
    targets_cut: int = Field(description="training targets whose explanation was shortened")
    trainable_parameters: int
    total_parameters: int
    metrics: dict[str, MetricRecord]

    @property
    def identity(self) -> RunIdentity:
        """Which run it is of."""
        return RunIdentity(**{name: getattr(self, name) for name in RunIdentity.model_fields})

    @property
    def value_names(self) -> list[str]:
        """The names of all values, in the order of the metrics."""
        return [name for record in self.metrics.values() for name in record.values]

    def value(self, name: str) -> float | None:
        """One value by its name, whichever metric has it.

        Raises:
            KeyError: If no metric has a value of that name.
        """
        for record in self.metrics.values():
            if name in record.values:
                return record.values[name]
        raise KeyError(name)
