"""Any adapter that PEFT knows, from a configuration file of the user's own."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from caref.errors import CarefError
from caref.methods.adalora import freeze_ranks, orthogonality_penalty
from caref.methods.method import Method, task_type

if TYPE_CHECKING:
    from peft import PeftConfig, PeftModel
    from transformers import PreTrainedModel


class PeftFile(Method):
    """What an ``adapter_config.json`` of PEFT describes.

    The kind of task and the base model follow from the run, whatever the file says.

    Args:
        peft_config_file: The file, as PEFT writes it: ``peft_type`` and that type's settings. Needed.
    """

    summary: ClassVar[str] = "what a PEFT configuration file of yours describes"

    def __init__(self, *, peft_config_file: str | None = None) -> None:
        if peft_config_file is None:
            raise CarefError("the method 'peft' needs --peft-config-file, an adapter_config.json")
        self.path = Path(peft_config_file)
        self.content = _read(self.path)

    def peft_config(self, model: PreTrainedModel) -> PeftConfig:
        """The file's configuration.

        Raises:
            CarefError: If PEFT does not take it.
        """
        from peft import PeftConfig

        settings = {
            **self.content,
            "task_type": task_type(model),
            "inference_mode": False,
            "base_model_name_or_path": None,
        }
        try:
            with warnings.catch_warnings():
                # A setting that PEFT does not know would be left out.
                warnings.filterwarnings("error", message="Unexpected keyword arguments")
                return PeftConfig.from_peft_type(**settings)
        except (TypeError, ValueError, KeyError, UserWarning) as error:
            raise CarefError(f"{self.path} is no configuration of PEFT: {_in_one_line(error)}") from error

    def apply(self, model: PreTrainedModel, *, seed: int = 0) -> PreTrainedModel | PeftModel:
        """Freeze `model` but for what the file adds, in place.

        Raises:
            CarefError: If PEFT cannot apply the configuration to this model.
        """
        try:
            return freeze_ranks(super().apply(model, seed=seed))
        except (ValueError, TypeError, KeyError, AttributeError, NotImplementedError) as error:
            if isinstance(error, CarefError):
                raise
            raise CarefError(
                f"PEFT cannot apply {self.path} to a {model.config.model_type} model: {_in_one_line(error)}"
            ) from error

    def before_update(self, model: PreTrainedModel | PeftModel) -> None:
        """What AdaLoRA needs, where the file describes it."""
        if self.is_adalora:
            config = model.peft_config[model.active_adapter]
            (config.orth_reg_weight * orthogonality_penalty(model)).backward()

    def after_update(self, model: PreTrainedModel | PeftModel, step: int, total: int) -> None:
        """What AdaLoRA needs, by the file's own schedule, where the file describes it."""
        if self.is_adalora:
            model.base_model.update_and_allocate(step)

    @property
    def is_adalora(self) -> bool:
        """Whether the file describes AdaLoRA, which has to be told of every step."""
        return bool(self.content["peft_type"] == "ADALORA")


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CarefError(f"cannot read {path}: {error.strerror}") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CarefError(f"{path} is not JSON: {_in_one_line(error)}") from error
    if not isinstance(content, dict) or "peft_type" not in content:
        raise CarefError(f"{path} names no peft_type; PEFT's adapter_config.json does")
    return content


def _in_one_line(error: Exception) -> str:
    """An error of PEFT's without its line breaks, and not too long."""
    return " ".join(str(error).split())[:300]
