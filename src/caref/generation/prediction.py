"""What a model said about one example: the line format of ``predictions.jsonl``."""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from caref.errors import DataError
from caref.tasks.parsing import NO_EXPLANATION

_ROUNDING = 0.01
"""How far rounded probabilities may be from adding up to 1."""


class Answer(BaseModel):
    """What a model said to one input. Log-probabilities are natural; probabilities within [0, 1]."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    id: str = Field(description="of the example, the same in every file about it")
    input: str = Field(default="", description="the text that the model was given")
    text: str = Field(default="", description="the raw generation")
    label: str = Field(description="the answer read from it; all of it where it is broken")
    explanation: str = Field(description="the explanation read from it; UNK where it is broken")
    broken: bool = Field(default=False, description="no separator was generated")
    confidence: float | None = Field(
        default=None, ge=0, le=1, description="probability of `label`; see `confidence_source`"
    )
    confidence_source: str | None = Field(
        default=None,
        description="'candidates': softmax over the candidates' summed log-probabilities; "
        "'generated': exp of the generated answer's own summed log-probability",
    )
    label_probabilities: dict[str, float] | None = Field(
        default=None, description="candidate to its share among the candidates"
    )
    label_log_probs_sum: dict[str, float] | None = Field(
        default=None, description="candidate to the sum of its tokens' log-probabilities, separator included"
    )
    label_log_probs_mean: dict[str, float] | None = Field(
        default=None, description="the same divided by the number of tokens"
    )
    temperature: float | None = Field(
        default=None,
        gt=0,
        description="what label_log_probs_sum was divided by for `label_probabilities`; None: by nothing",
    )
    answer_mass: float | None = Field(
        default=None, ge=0, description="sum of exp(label_log_probs_sum) over the candidates"
    )

    @property
    def is_explained(self) -> bool:
        """Whether there is an explanation: neither broken nor blank nor what stands for none."""
        return not self.broken and self.explanation.strip() not in ("", NO_EXPLANATION)


class Prediction(Answer):
    """An answer beside what is right: enough to compute every metric.

    ``id``, ``label``, ``explanation``, ``gold_label`` and ``gold_explanations`` are needed, ``input`` for
    what asks whether an explanation merely restates it, the rest for confidence; any other system's
    predictions can be evaluated in this form.
    """

    gold_label: str = Field(description="the right answer")
    gold_explanations: tuple[str, ...] = Field(description="one or more reference explanations")

    @property
    def correct(self) -> bool:
        """Whether the label is the gold one, ignoring case and outer blanks."""
        return self.label.strip().lower() == self.gold_label.strip().lower()


def fault_of_probabilities(probabilities: Mapping[str, float]) -> str | None:
    """What is wrong with the candidates' probabilities of a prediction; None where they are a distribution.

    Example:
        >>> fault_of_probabilities({"yes": 0.7, "no": 0.2})
        'label_probabilities must be at least 0 and add up to 1, got a sum of 0.9 and a smallest of 0.2'
    """
    total, smallest = math.fsum(probabilities.values()), min(probabilities.values(), default=0.0)
    # Written so that NaN, which compares as False, is refused.
    if smallest >= 0 and abs(total - 1) <= _ROUNDING:
        return None
    return (
        "label_probabilities must be at least 0 and add up to 1, "
        f"got a sum of {total:.6g} and a smallest of {smallest:.6g}"
    )


def write_predictions(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write one JSON object per line, flushed to disk; the same predictions give the same bytes."""
    with path.open("w", encoding="utf-8") as file:
        for prediction in predictions:
            file.write(json.dumps(prediction.model_dump(mode="json"), ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_predictions(path: Path) -> list[Prediction]:
    """Read what `write_predictions` wrote.

    Raises:
        DataError: On the first line that is no prediction, named with file and line.
    """
    return list(each_prediction(path))


def each_prediction(path: Path) -> Iterator[Prediction]:
    """The same, one line at a time."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                record: Any = json.loads(line.decode("utf-8"))
                yield Prediction.model_validate(record)
            except (UnicodeDecodeError, json.JSONDecodeError, ValidationError) as error:
                raise DataError(f"{path}:{number}: not a prediction: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: {error.reason}"
    if not isinstance(error, ValidationError):
        return f"not JSON: {error}"
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(where, Prediction.model_fields, n=1)
        known = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(Prediction.model_fields)}"
        return f"unknown field {where!r}; {known}"
    return f"{where}: {first['msg']}" if where else first["msg"]
