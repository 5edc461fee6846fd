"""From a spec to the things it names: the split, the prompt, the tokenization, the loss."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from caref.errors import CarefError
from caref.experiments.resources import Resources
from caref.experiments.spec import RunSpec
from caref.protocol.split import Split, draw_split
from caref.tasks.prompt import PromptFormat

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedConfig, PreTrainedModel

    from caref.losses import Objective
    from caref.models.encoding import Encoder


def drawn_split(spec: RunSpec, resources: Resources) -> Split:
    """The examples that a run trains on and is evaluated on."""
    task = resources.task(spec)
    return draw_split(
        task.name,
        task.labels,
        resources.pool(spec, "train").examples,
        resources.pool(spec, "validation").examples,
        seed=spec.seed,
        shots=spec.shots,
        eval_size=spec.eval_size,
    )


def prompt_format(spec: RunSpec, resources: Resources) -> PromptFormat:
    """The prompt that a spec names: one of the task's, or a YAML file.

    Raises:
        CarefError: If the task has none of that name.
    """
    if spec.prompt.endswith((".yaml", ".yml")):
        from caref.tasks.prompt_file import load_prompt

        return load_prompt(Path(spec.prompt))
    prompts = resources.task(spec).prompts
    if spec.prompt not in prompts:
        raise CarefError(f"{spec.task} has no prompt {spec.prompt!r}; it has: {', '.join(prompts)}")
    return prompts[spec.prompt]


def make_encoder(spec: RunSpec, resources: Resources, config: PreTrainedConfig) -> Encoder:
    """The tokenization that a spec asks for, for a model with this configuration."""
    from caref.models.encoding import Encoder

    return Encoder(
        resources.tokenizer(spec),
        prompt_format(spec, resources),
        config,
        max_input_tokens=spec.training.max_input_tokens,
        max_target_tokens=spec.training.max_target_tokens,
        answer_only=spec.supervision == "answer_only",
    )


def make_objective(spec: RunSpec, encoder: Encoder, *, fused: str = "auto") -> Objective:
    """The loss that a spec asks for.

    It is told how this tokenizer writes the separator, and whether the model is decoder-only: then the
    logits at one position are those of the next token.

    Args:
        spec: Its objective and settings.
        encoder: Of this run.
        fused: How it is computed.

    Raises:
        CarefError: If a kernel is asked for that the objective does not have.
    """
    from caref.losses import OBJECTIVES

    wiring: dict[str, Any] = {
        "separator_ids": encoder.separator_ids(),
        "shift": encoder.decoder_only,
        "fused": fused,
    }
    try:
        return OBJECTIVES.get(spec.objective)(**wiring, **spec.objective_settings)
    except ValueError as error:
        raise CarefError(str(error)) from error


def check_positions(spec: RunSpec, encoder: Encoder, model: PreTrainedModel | PeftModel) -> None:
    """Find out before the training whether the longest text is longer than the model can be given.

    Args:
        spec: Whose limits on inputs, targets and generated tokens count.
        encoder: Of this run.
        model: With its adapter, whose virtual tokens take positions as well.

    Raises:
        CarefError: If the limits together are more than the model's positions. T5 has no such number.
    """
    from caref.generation.virtual_tokens import virtual_tokens

    virtual, config = virtual_tokens(model), model.config
    before = virtual.before_input if virtual else 0
    cached = virtual.in_cache if virtual else 0
    generated = spec.max_new_tokens
    if encoder.answer_only:
        # The answer, the separator that is put after it, and the explanation.
        generated += len(encoder.separator_ids()) + spec.max_new_tokens
    target = max(spec.training.max_target_tokens, generated)
    if encoder.decoder_only:
        _check_room("the model", config, spec.training.max_input_tokens + target, before + cached)
    else:
        reads, writes = getattr(config, "encoder", config), getattr(config, "decoder", config)
        _check_room("the model's encoder", reads, spec.training.max_input_tokens, before)
        _check_room("the model's decoder", writes, target, cached)


def _check_room(what: str, config: PreTrainedConfig, tokens: int, virtual: int) -> None:
    room = getattr(config, "max_position_embeddings", None)
    if room is not None and tokens + virtual > room:
        more = f" and {virtual} virtual ones" if virtual else ""
        raise CarefError(
            f"{what} has {room} positions, and up to {tokens} tokens{more} are asked for; "
            "lower --max-input-tokens, --max-target-tokens or --max-new-tokens"
        )
