"""How a run is trained: one value, and the presets that fill it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from caref.errors import CarefError


class TrainingSettings(BaseModel):
    """Everything that training depends on besides data, model, method and objective.

    The defaults are the preset ``fewshot``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: float = Field(
        50, ge=0, description="passes over the training examples; 0: train nothing, the model as it is"
    )
    max_steps: int = Field(-1, ge=-1, description="optimizer steps; overrides epochs where positive")
    learning_rate: float = Field(3e-4, gt=0, description="peak learning rate of AdamW")
    schedule: Literal["linear", "constant", "constant_with_warmup", "cosine"] = Field(
        "linear", description="learning rate after the warm-up"
    )
    warmup_steps: int = Field(0, ge=0, description="steps of linear warm-up")
    warmup_fraction: float = Field(
        0.06, ge=0, lt=1, description="warm-up as a share of all steps, where warmup_steps is 0"
    )
    weight_decay: float = Field(0.01, ge=0, description="AdamW's decoupled weight decay")
    adam_beta1: float = Field(0.9, ge=0, lt=1, description="AdamW's first decay rate")
    adam_beta2: float = Field(0.999, ge=0, lt=1, description="AdamW's second decay rate")
    adam_epsilon: float = Field(1e-8, gt=0, description="AdamW's epsilon")
    max_grad_norm: float = Field(1.0, ge=0, description="gradient norm is clipped to this; 0: never")
    batch_size: int = Field(4, ge=1, description="examples per device and micro-batch")
    gradient_accumulation: int = Field(1, ge=1, description="micro-batches per optimizer step")
    max_input_tokens: int = Field(256, ge=8, description="longer inputs are cut in their context")
    max_target_tokens: int = Field(64, ge=4, description="longer targets are cut in their explanation")
    precision: Literal["fp32", "bf16", "fp16"] = Field("fp32", description="arithmetic of training")
    gradient_checkpointing: bool = Field(False, description="recompute activations to save memory")
    checkpoint_epochs: int = Field(
        0, ge=0, description="save a checkpoint every so many epochs, to resume inside a run; 0: never"
    )


PRESETS: dict[str, dict[str, Any]] = {
    "fewshot": {},
    # Appendix: 500 of the 600 steps are warm-up.
    "paper": {
        "epochs": 50,
        "learning_rate": 3e-5,
        "schedule": "linear",
        "warmup_steps": 500,
        "weight_decay": 0.01,
        "batch_size": 4,
        "max_grad_norm": 1.0,
    },
    # Marasovic et al. 2022: 300 steps, constant rate.
    "feb": {
        "max_steps": 300,
        "learning_rate": 3e-5,
        "schedule": "constant",
        "warmup_fraction": 0.0,
        "weight_decay": 0.0,
        "batch_size": 4,
    },
}


def preset(name: str, **overrides: Any) -> TrainingSettings:
    """A preset's settings with some of them changed.

    Raises:
        CarefError: If there is no such preset.
    """
    if name not in PRESETS:
        raise CarefError(f"unknown preset {name!r}; there are: {', '.join(PRESETS)}")
    return TrainingSettings(**{**PRESETS[name], **overrides})
