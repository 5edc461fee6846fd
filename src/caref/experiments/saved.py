"""What a complete run left: its spec, its weights, and the card that describes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from caref.errors import CarefError, DataError
from caref.experiments.spec import RunSpec, read_run_spec
from caref.results.model_card import CardFacts
from caref.results.run_directory import RunDirectory

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedConfig, PreTrainedModel

    from caref.models.encoding import Encoder
    from caref.models.loading import ModelSource


@dataclass(frozen=True, slots=True)
class SavedRun:
    """A complete run whose weights were kept.

    Attributes:
        directory: Where it lies.
        spec: What it was; its model is where the base model lies now.
    """

    directory: RunDirectory
    spec: RunSpec

    @classmethod
    def find(cls, path: Path, *, base_model: str | None = None, trust_remote_code: bool = False) -> SavedRun:
        """Read a run's spec; loads no weights.

        Args:
            path: Its directory.
            base_model: Where the base model lies now, if not where the run found it.
            trust_remote_code: Let code from the model's repository run. What the run's own files say of
                it does not count: they may come from somebody else.

        Raises:
            DataError: If the directory holds no complete run.
            CarefError: If its weights were not kept, or it needs code that it is not allowed to run.
        """
        directory = RunDirectory(path)
        if not directory.is_complete:
            raise DataError(f"{path} holds no complete run: result.json is missing")
        spec = read_run_spec(directory)
        if spec.trust_remote_code and not trust_remote_code:
            raise CarefError(
                f"{path} was run with code from the repository of {spec.model}; "
                "--trust-remote-code lets that code run again"
            )
        if not directory.model_path.is_dir() and not any(directory.adapter_path.glob("*.safetensors")):
            raise CarefError(
                f"{path} holds no trained weights: it was run with --no-save-adapter, or they were removed"
            )
        changes = {"model": base_model or spec.model, "trust_remote_code": trust_remote_code}
        return cls(directory, spec.model_copy(update={**changes, **directory.own_files()}))

    @property
    def is_adapter(self) -> bool:
        """Whether an adapter was trained, rather than the whole model."""
        return not self.directory.model_path.is_dir()

    @property
    def base(self) -> ModelSource:
        """The base model."""
        from caref.models.loading import ModelSource

        return ModelSource(self.spec.model, self.spec.trust_remote_code)

    def load(self) -> PreTrainedModel | PeftModel:
        """Load the model, with its adapter where it has one.

        Raises:
            CarefError: If the base model is not there, or is another than the adapter was trained on.
        """
        from caref.models.adapters import load_adapter
        from caref.models.loading import ModelSource, load_model

        if self.is_adapter:
            return load_adapter(self.base, self.directory.adapter_path)
        return load_model(ModelSource(str(self.directory.model_path), self.spec.trust_remote_code))


def card_facts(base: ModelSource, config: PreTrainedConfig, encoder: Encoder, example: str) -> CardFacts:
    """What a model card says of the base model and of how it is asked.

    Args:
        base: The base model.
        config: Its configuration.
        encoder: The run's.
        example: An input of the run.
    """
    return CardFacts(
        base=base.name,
        base_kind=base.kind,
        auto_class="AutoModelForSeq2SeqLM" if config.is_encoder_decoder else "AutoModelForCausalLM",
        example_input=example,
        separator=encoder.separator,
    )
