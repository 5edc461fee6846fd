"""What a method is: a choice of weights, applied to a model as an ordinary PEFT adapter."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from caref.errors import CarefError
from caref.models.architectures import architecture_of, matching, query_layout
from caref.models.loading import quiet_peft

if TYPE_CHECKING:
    import torch
    from peft import PeftConfig, PeftModel, TaskType
    from transformers import PreTrainedModel


class Method(ABC):
    """One way to choose the weights that move.

    A subclass's constructor keywords are its settings: the command line makes a flag of each.
    """

    summary: ClassVar[str]
    """What is trained, in a line."""

    @abstractmethod
    def peft_config(self, model: PreTrainedModel) -> PeftConfig | None:
        """The adapter's PEFT configuration for this model; None where the model itself is trained."""

    def apply(self, model: PreTrainedModel, *, seed: int = 0) -> PreTrainedModel | PeftModel:
        """Freeze `model` but for the weights of this method, in place.

        Args:
            model: What is trained.
            seed: Of weights that start at random, LoRA's; whatever was drawn before in this process.

        Raises:
            CarefError: If no weight of the model is chosen.
        """
        import torch
        from peft import get_peft_model

        config = self.peft_config(model)
        if config is None:
            return model.requires_grad_(True)
        with quiet_peft(), torch.random.fork_rng():
            torch.manual_seed(seed)
            return get_peft_model(model, config)

    # Most methods need neither of these two.
    def before_update(self, model: PreTrainedModel | PeftModel) -> None:  # noqa: B027
        """Called before every optimizer step, with the gradients of the whole batch in place."""

    def after_update(self, model: PreTrainedModel | PeftModel, step: int, total: int) -> None:  # noqa: B027
        """Called after every optimizer step, before the gradients are cleared.

        Args:
            model: What is trained.
            step: Steps done, from 1.
            total: Steps in all.
        """


class ModuleTuning(Method):
    """Whole modules are trained: a trained copy replaces each of them, all else is frozen.

    PEFT calls the adapter LN tuning after its first use; it takes any module. Only the copies are
    saved, ``PeftModel.from_pretrained`` loads them without caref, and merging puts them in place.

    Where one matrix holds q, k and v, a method of `query_only` trains the q part of its copy alone. The
    adapter still holds the whole matrix, since PEFT knows no parts: its file is larger than what was
    trained. An expression of one's own trains what it matches, whole.

    Args:
        target_modules: A regular expression over whole module names, for an architecture that the
            table does not have, or for a choice of your own.
    """

    query_only: ClassVar[bool] = False
    """Whether of q, k and v this method trains q alone."""

    def __init__(self, *, target_modules: str | None = None) -> None:
        self.target_modules = target_modules

    def apply(self, model: PreTrainedModel, *, seed: int = 0) -> PreTrainedModel | PeftModel:
        """Replace the chosen modules by trained copies, in place.

        Raises:
            CarefError: If no module matches.
        """
        tuned = super().apply(model, seed=seed)
        if self.query_only and self.target_modules is None and (layout := query_layout(model.config)):
            from caref.methods.fused import tune_query_only

            groups, width = layout
            tune_query_only(tuned, architecture_of(model.config).query, groups=groups, width=width)
        return tuned

    @abstractmethod
    def modules(self, model: PreTrainedModel) -> str:
        """A regular expression over the names of the modules to train."""

    def peft_config(self, model: PreTrainedModel) -> PeftConfig:
        """The configuration of the trained copies.

        Raises:
            CarefError: If no module matches.
        """
        from peft import LNTuningConfig

        pattern = self.modules(model) if self.target_modules is None else self.target_modules
        require_match(pattern, model)
        return LNTuningConfig(task_type=task_type(model), target_modules=pattern)


def task_type(model: PreTrainedModel) -> TaskType:
    """What PEFT calls this kind of model."""
    from peft import TaskType

    return TaskType.SEQ_2_SEQ_LM if model.config.is_encoder_decoder else TaskType.CAUSAL_LM


def require_match(pattern: str, model: PreTrainedModel) -> list[torch.nn.Module]:
    """The layers of a model that a pattern matches, each of which holds weights.

    Raises:
        CarefError: If there are none, or if it matches a module around the layers: PEFT would copy the
            whole of it, and could not merge it again.
    """
    modules = dict(model.named_modules())
    try:
        found = matching(pattern, [name for name in modules if name])
    except re.error as error:
        raise CarefError(f"{pattern!r} is not a regular expression: {error}") from error
    if not found:
        shown = ", ".join([name for name in modules if name and _holds_weights(modules[name])][:3])
        raise CarefError(
            f"{pattern!r} matches no module of this {model.config.model_type} model; "
            f"its modules are called {shown}, ..."
        )
    for name in found:
        if not _holds_weights(modules[name]):
            kind = type(modules[name]).__name__
            raise CarefError(
                f"{pattern!r} matches {name!r}, a {kind} without weights of its own; match the layers alone, "
                "by how their names end"
            )
    return [modules[name] for name in found]


def _holds_weights(module: torch.nn.Module) -> bool:
    return next(module.parameters(recurse=False), None) is not None


def check_virtual_tokens(number: int) -> None:
    """Check a number of virtual tokens.

    Raises:
        CarefError: If it is below 1.
    """
    if number < 1:
        raise CarefError(f"virtual_tokens must be at least 1, got {number}")
