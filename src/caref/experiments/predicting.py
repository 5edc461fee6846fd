"""A trained run, loaded again to answer new questions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caref.errors import CarefError, DataError
from caref.experiments.resources import Resources
from caref.experiments.run import make_encoder
from caref.experiments.spec import RunSpec
from caref.results.run_directory import RunDirectory
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
    """

    def __init__(
        self, spec: RunSpec, model: PreTrainedModel, encoder: Encoder, labels: tuple[str, ...]
    ) -> None:
        self.spec = spec
        self.model = model
        self.encoder = encoder
        self.labels = labels

    @classmethod
    def load(cls, path: Path, *, base_model: str | None = None) -> TrainedRun:
        """Load a run.

        Args:
            path: Its directory.
            base_model: Where the base model lies now, if not where the run found it.

        Raises:
            DataError: If the directory holds no complete run.
            CarefError: If its weights were not kept.
        """
        from peft import PeftModel

        from caref.models.loading import ModelSource, load_model, quiet_transformers

        directory = RunDirectory(path)
        if not directory.is_complete:
            raise DataError(f"{path} holds no complete run: result.json is missing")
        spec = RunSpec.model_validate(directory.read_spec())
        spec = spec.model_copy(update={"model": base_model or spec.model})
        if directory.model_path.is_dir():
            model = load_model(ModelSource(str(directory.model_path), spec.trust_remote_code))
        elif directory.adapter_path.is_dir():
            base = load_model(ModelSource(spec.model, spec.trust_remote_code))
            with quiet_transformers():
                model = PeftModel.from_pretrained(base, str(directory.adapter_path))
        else:
            raise CarefError(f"{path} was run with --no-save-adapter: there are no weights to predict with")
        resources = Resources()
        encoder = make_encoder(spec, resources, model.config.decoder_start_token_id)
        return cls(spec, model, encoder, resources.task(spec).labels)

    def read_questions(self, path: Path) -> list[EncodedQuestion]:
        """Read JSON lines: ``{"input": text}`` as the model reads it, or the fields of the task.

        ``choices`` and ``id`` may be there; without choices the task's labels are the candidates.

        Raises:
            DataError: On the first line that cannot be used, named with file and line.
        """
        questions = []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if not line.strip():
                continue
            try:
                questions.append(self._question(json.loads(line), str(number)))
            except (json.JSONDecodeError, CarefError, TypeError) as error:
                raise DataError(f"{path}:{number}: {error}") from error
        return questions

    def answer(self, questions: Sequence[EncodedQuestion], *, batch_size: int = 64) -> list[Answer]:
        """Answer, explain and say how sure, one for each question in their order."""
        from caref.generation.answering import answer

        return answer(
            self.model,
            self.encoder,
            questions,
            max_new_tokens=self.spec.max_new_tokens,
            batch_size=batch_size,
        )

    def _question(self, record: Any, number: str) -> EncodedQuestion:
        if not isinstance(record, dict):
            raise CarefError(f"expected an object with an input or the task's fields, got {record!r}")
        choices = record.pop("choices", None) or self.labels
        id = str(record.pop("id", number))
        if "input" in record:
            return self.encoder.question(id, str(record["input"]), tuple(map(str, choices)))
        example = Example(
            id,
            {name: str(value) for name, value in record.items()},
            tuple(map(str, choices)),
            answer=str(choices[0]) if choices else "",
            explanations=("",),
        )
        return self.encoder.ask(example)[0]
