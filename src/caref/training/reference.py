"""What the base model would have said, beside what the trained one says: for objectives that compare."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel


@contextlib.contextmanager
def with_reference_logits(
    model: PreTrainedModel | PeftModel,
    *,
    autocast: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext,
) -> Iterator[None]:
    """Within the block every forward pass of `model` gives ``reference_logits`` too.

    They are the logits of the model as it is when the block is entered, without its adapter, for the
    same batch: enter it before training and before a checkpoint is loaded. They come from a second pass
    without gradients:

    - of the same weights with the adapter switched off, where the base's weights stay as they are;
    - of a frozen copy, which takes the memory of the model once more, where they do not: a model that is
      trained itself, and an adapter that changes the base's weights at its start or trains their biases.

    The base answers without dropout, whatever the model's mode: the anchor is its distribution, not a
    draw. The trained model keeps its dropout, so that the two may differ before the first step. Afterwards
    the model is as it was, but for its weights.

    Args:
        model: What is trained. Its forward returns a mapping that has ``logits``.
        autocast: Entered around the second pass; the Trainer's mixed precision, so that both passes are
            computed alike.
    """
    base = _AdapterOff() if _keeps_its_base(model) else _FrozenCopy(model)

    def add_reference(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        with torch.no_grad(), autocast():
            output["reference_logits"] = base.logits(module, args, kwargs).detach()
        return output

    hook = model.register_forward_hook(add_reference, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


class _AdapterOff:
    """The base inside a PEFT model."""

    def logits(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
        # What virtual tokens are put before is the base itself. PEFT's switch would leave traces there.
        outside = model.peft_config[model.active_adapter].is_prompt_learning
        with _as_it_was(model), contextlib.nullcontext() if outside else model.disable_adapter():
            # The hook is on the outer model: a call of the inner one does not come back here.
            base = model.get_base_model()
            base.eval()
            return base(*args, **kwargs).logits


class _FrozenCopy:
    """The model as it was at the start, on each device that asks for it."""

    def __init__(self, model: PreTrainedModel | PeftModel) -> None:
        frozen = copy.deepcopy(model).eval().requires_grad_(False)
        self.copies = {next(frozen.parameters()).device: frozen}

    def logits(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
        device = next(value.device for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor))
        if device not in self.copies:
            self.copies[device] = copy.deepcopy(next(iter(self.copies.values()))).to(device)
        return self.copies[device](*args, **kwargs).logits


@contextlib.contextmanager
def _as_it_was(model: nn.Module) -> Iterator[None]:
    """Put back each module's mode and which weights are trained: PEFT sets the latter by its own rules."""
    modes = [(module, module.training) for module in model.modules()]
    trained = [(weight, weight.requires_grad) for weight in model.parameters()]
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode
        for weight, wanted in trained:
            if weight.requires_grad != wanted:
                weight.requires_grad_(wanted)


# These starts of LoRA leave the base's weights alone. The others move a part of them into the adapter.
_STARTS_APART = (True, False, None, "gaussian", "orthogonal", "eva", "mica")


def _keeps_its_base(model: PreTrainedModel | PeftModel) -> bool:
    """Whether the model without its adapter stays the base throughout a training."""
    from peft import PeftModel

    if not isinstance(model, PeftModel):
        return False
    config = model.peft_config[model.active_adapter]
    return (
        getattr(config, "bias", "none") == "none"
        and getattr(config, "init_lora_weights", True) in _STARTS_APART
    )
