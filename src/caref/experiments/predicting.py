"""A trained run, loaded again to answer new questions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caref.errors import CarefError, DataError
from caref.experiments.assembly import make_encoder
from caref.experiments.resources import Resources
from caref.experiments.saved import SavedRun
from caref.experiments.spec import RunSpec
from caref.metrics.calibration.temperature import BOUNDS
from caref.results.result import RunResult
from caref.tasks.example import Example

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from caref.generation.prediction import Answer
    from caref.models.encoding import EncodedQuestion, Encoder


class TrainedRun:
    """The model of a complete run, ready to answer.

    Args:
        spec: What the run was.
        model: With its adapter.
        encoder: As in the run.
        labels: The task's fixed labels; empty where each question brings its own choices.
        temperature: What the candidates' scores are divided by for their probabilities: fitted on the
            examples that the run was evaluated on, so for *other* ones. None where the run has none.
    """

    def __init__(
        self,
        spec: RunSpec,
        model: PreTrainedModel,
        encoder: Encoder,
        labels: tuple[str, ...],
        temperature: float | None = None,
    ) -> None:
        self.spec = spec
        self.model = model
        self.encoder = encoder
        self.labels = labels
        self.temperature = temperature

    @classmethod
    def load(
        cls, path: Path, *, base_model: str | None = None, trust_remote_code: bool = False
    ) -> TrainedRun:
        """Load a run.

        Args:
            path: Its directory.
            base_model: Where the base model lies now, if not where the run found it.
            trust_remote_code: Let code from the model's repository run. What the run's own files say of
                it does not count: they may come from somebody else.

        Raises:
            DataError: If the directory holds no complete run.
            CarefError: If its weights were not kept, or it needs code that it is not allowed to run.
        """
        saved = SavedRun.find(path, base_model=base_model, trust_remote_code=trust_remote_code)
        model, spec = saved.load(), saved.spec
        resources = Resources()
        encoder = make_encoder(spec, resources, model.config)
        temperature = fitted_temperature(saved.directory.read_result())
        return cls(spec, model, encoder, resources.task(spec).labels, temperature)

    def read_questions(self, path: Path) -> list[EncodedQuestion]:
        """Read JSON lines: ``{"input": text}`` as the model reads it, or the fields of the task.

        ``choices`` and ``id`` may be there; without choices the task's labels are the candidates.

        Raises:
            DataError: On the first line that cannot be used, named with file and line.
        """
        try:
            # Not splitlines(), which also breaks a line where a text holds U+2028.
            lines = path.read_text(encoding="utf-8").split("\n")
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not UTF-8") from error
        questions = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                questions.append(self._question(json.loads(line), str(number)))
            except json.JSONDecodeError as error:
                raise DataError(f"{path}:{number}: not JSON: {error.msg}") from error
            except CarefError as error:
                raise DataError(f"{path}:{number}: {error}") from error
        return questions

    def answer(
        self,
        questions: Sequence[EncodedQuestion],
        *,
        batch_size: int = 64,
        temperature: float | None = None,
    ) -> list[Answer]:
        """Answer, explain and say how sure, one for each question in their order.

        Args:
            questions: From `read_questions` or the encoder.
            batch_size: Questions per batch.
            temperature: Above 0, in place of the run's own; 1 leaves the probabilities as they are.
        """
        from caref.generation.answering import answer

        return answer(
            self.model,
            self.encoder,
            questions,
            max_new_tokens=self.spec.max_new_tokens,
            batch_size=batch_size,
            temperature=self.temperature if temperature is None else temperature,
        )

    def _question(self, record: Any, number: str) -> EncodedQuestion:
        if not isinstance(record, dict):
            raise CarefError(f"expected an object with an input or the task's fields, got {record!r}")
        choices = record.pop("choices", None) or list(self.labels)
        if not isinstance(choices, list) or not all(isinstance(each, str) for each in choices):
            raise CarefError(f"choices must be a list of texts, got {choices!r}")
        id = str(record.pop("id", number))
        for name in ["input"] if "input" in record else record:
            if not isinstance(record[name], str):
                raise CarefError(f"{name} must be a text, got {record[name]!r}")
        if "input" in record:
            return self.encoder.question(id, record["input"], tuple(choices))
        example = Example(
            id, record, tuple(choices), answer=choices[0] if choices else "", explanations=("",)
        )
        return self.encoder.ask(example)[0]


def fitted_temperature(result: RunResult) -> float | None:
    """The temperature that a run's evaluation fitted.

    None where it was not asked for, is undefined, or lies on a bound of the search: the examples did not
    determine it, and 0.01 would make every confidence 1.
    """
    record = result.metrics.get("temperature")
    value = None if record is None else record.values.get("temperature")
    return None if value in BOUNDS else value
