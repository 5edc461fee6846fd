"""What the objective needs to know from the Trainer, and what the Trainer should log of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from transformers import TrainerCallback

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel, TrainerControl, TrainerState, TrainingArguments

    from caref.losses.objective import Objective


class ObjectiveCallback(TrainerCallback):
    """Tells an objective how far training is, and adds its terms to every log entry.

    Add it to any Trainer whose ``compute_loss_func`` is the same object. The terms are summed on the
    device; they are read, one synchronisation, when the Trainer logs.

    Args:
        objective: The loss that the Trainer computes.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Set the share of training done, for the warm-up of lambda_sced."""
        self.objective.set_progress(state.global_step / max(1, state.max_steps))

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Add the terms' means since the last entry."""
        terms = self.objective.pop_components()
        if logs is not None:
            logs.update(terms)
        if state.log_history:
            state.log_history[-1].update(terms)


class StepCallback(TrainerCallback):
    """Calls a function after every optimizer step: how far, and of how many.

    Args:
        report: Called with the steps done and the steps in all.
    """

    def __init__(self, report: Callable[[int, int], None]) -> None:
        self.report = report

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Report one more step."""
        self.report(state.global_step, state.max_steps)


class UpdateHooks(Protocol):
    """What wants to act around every optimizer step; a method of `caref.methods` is one."""

    def before_update(self, model: PreTrainedModel | PeftModel) -> None:
        """Called with the gradients in place."""

    def after_update(self, model: PreTrainedModel | PeftModel, step: int, total: int) -> None:
        """Called after the step, before the gradients are cleared; `step` counts from 1."""


class UpdateCallback(TrainerCallback):
    """Calls the hooks around every optimizer step of a Trainer.

    Args:
        hooks: Who is called.
        model: What is trained; under several processes the model itself, not its wrapper.
    """

    def __init__(self, hooks: UpdateHooks, model: PreTrainedModel | PeftModel) -> None:
        self.hooks, self.model = hooks, model

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """After clipping, before the step."""
        self.hooks.before_update(self.model)

    def on_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """After the step, which the state has not counted yet."""
        self.hooks.after_update(self.model, state.global_step + 1, state.max_steps)
