"""From a spec to the things it names: the split, the prompt, the tokenization, the loss."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from caref.errors import CarefError
from caref.experiments.resources import Resources
from caref.experiments.spec import RunSpec
from caref.protocol.split import Split, draw_split
from caref.tasks.prompt import PromptFormat

if TYPE_CHECKING:
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


def make_encoder(spec: RunSpec, resources: Resources, decoder_start_id: int | None) -> Encoder:
    """The tokenization that a spec asks for."""
    from caref.models.encoding import Encoder

    return Encoder(
        resources.tokenizer(spec),
        prompt_format(spec, resources),
        decoder_start_id=decoder_start_id,
        max_input_tokens=spec.training.max_input_tokens,
        max_target_tokens=spec.training.max_target_tokens,
        answer_only=spec.supervision == "answer_only",
    )


def make_objective(spec: RunSpec, encoder: Encoder) -> Objective:
    """The loss that a spec asks for; it is told how this tokenizer writes the separator."""
    from caref.losses import OBJECTIVES

    return OBJECTIVES.get(spec.objective)(separator_ids=encoder.separator_ids(), **spec.objective_settings)
