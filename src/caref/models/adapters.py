"""Loading a saved adapter onto the model that it was trained on, and onto no other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from caref.errors import CarefError
from caref.models.architectures import attention_shape
from caref.models.loading import (
    ModelSource,
    empty_model,
    load_config,
    load_model,
    quiet_peft,
    quiet_transformers,
)

if TYPE_CHECKING:
    from peft import PeftConfig, PeftModel
    from transformers import PreTrainedConfig

WEIGHTS = "adapter_model.safetensors"


def load_adapter(source: ModelSource, adapter: Path) -> PeftModel:
    """Load a model with an adapter on it; what does not fit is found before the model's weights are read.

    Raises:
        CarefError: If there is no such model or adapter, or the adapter was trained on another model.
    """
    from peft import PeftModel

    check_adapter_fits(adapter, source, load_config(source))
    base = load_model(source)
    with quiet_transformers(), quiet_peft():
        return PeftModel.from_pretrained(base, str(adapter))


def check_adapter_fits(adapter: Path, source: ModelSource, config: PreTrainedConfig) -> None:
    """Compare the names and shapes of an adapter's weights with what a model of this kind has room for.

    Raises:
        CarefError: If they differ.
    """
    from peft import PeftConfig, get_peft_model, get_peft_model_state_dict
    from safetensors import SafetensorError, safe_open

    try:
        with quiet_peft():
            settings = PeftConfig.from_pretrained(str(adapter))
        with safe_open(adapter / WEIGHTS, framework="pt") as file:
            saved = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CarefError(f"{adapter} holds no adapter: {' '.join(str(error).split())[:200]}") from error
    settings.base_model_name_or_path = None
    if settings.peft_type == "ADALORA":
        settings.rank_pattern = None
    try:
        with quiet_peft(), quiet_transformers():
            model = get_peft_model(empty_model(config), settings)
            room = {
                name: tuple(weight.shape)
                for name, weight in get_peft_model_state_dict(model, save_embedding_layers=False).items()
            }
    except (ValueError, KeyError, AttributeError, RuntimeError) as error:
        if isinstance(error, CarefError):
            raise
        told = " ".join(str(error).split())[:200]
        raise CarefError(f"the adapter in {adapter} does not fit {source.name}: {told}") from error
    if settings.is_prompt_learning:  # PEFT makes its room as the adapter says, not as the model is
        saved, room = {"virtual tokens": _tokens(settings)}, {"virtual tokens": _tokens_of(model, settings)}
    different = sorted(name for name in saved.keys() | room.keys() if saved.get(name) != room.get(name))
    if settings.peft_type == "ADALORA":  # its ranks are what was left of those at the start
        different = sorted(saved.keys() ^ room.keys())
    if different:
        name = different[0]
        raise CarefError(
            f"the adapter in {adapter} was trained on another model than {source.name}: {name}: "
            f"{_shape(saved.get(name))} in the adapter, {_shape(room.get(name))} in the model"
        )


def _tokens(settings: PeftConfig) -> tuple[int, ...]:
    """The shape of what virtual tokens are added to, as an adapter's configuration has it."""
    if settings.peft_type == "PREFIX_TUNING":
        return settings.num_attention_heads, settings.token_dim
    return (settings.token_dim,)


def _tokens_of(model: PeftModel, settings: PeftConfig) -> tuple[int, ...]:
    """The same, as the model has it."""
    if settings.peft_type == "PREFIX_TUNING":
        _, heads, size = attention_shape(model.get_base_model().config)
        return heads, heads * size
    return (model.get_base_model().get_input_embeddings().weight.shape[1],)


def _shape(shape: tuple[int, ...] | None) -> str:
    return "missing" if shape is None else "x".join(map(str, shape)) or "a number"
