"""A model's output head that promises logits in training, reversibly."""

from __future__ import annotations

from types import TracebackType
from typing import Any, cast

import torch
from torch import Tensor, nn

from caref.kernels.deferred import DeferredLogits


def defer_head(model: nn.Module) -> HeadHandle:
    """Let a model promise its logits while it is trained, so that a fused loss never holds them all.

    In training mode with gradients the model's ``logits`` become `DeferredLogits`: hidden states and head.
    An `Objective` of caref takes them as they are; anything else that is done to them computes the logits.
    Without gradients (generation, evaluation) and in evaluation mode all is as before. What the model makes
    of its logits on the way out, a bias, a scale or a softcap, becomes part of the promise.

    Names, weights and what is saved stay as they are. It does not matter whether an adapter is added before
    or after, so long as it leaves the head alone or trains the whole of it. Of several processes
    DistributedDataParallel makes one training; DataParallel cannot gather promises.

    Args:
        model: A model of transformers or PEFT, or any with ``get_output_embeddings()``.

    Returns:
        A handle: ``remove()`` undoes it, and so does the end of a ``with`` block.

    Raises:
        ValueError: If the head is not a plain linear layer, so that its logits cannot be promised.

    Example:
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> from caref import CarefLoss
        >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=1)).train()
        >>> tokens, loss = torch.tensor([[3, 1, 4]]), CarefLoss(shift=True)
        >>> with defer_head(model):
        ...     loss(model(tokens), tokens).backward()
        >>> loss.ran
        'chunked, from hidden states'
    """
    if (why := why_not_deferred(model)) is not None:
        raise ValueError(f"the logits of {type(model).__name__} cannot be promised: {why}")
    # The class is changed and not the method: a copy of the model goes on with weights of its own.
    cast("nn.Linear", _head_of(model)).__class__ = DeferredHead
    return HeadHandle(model)


def why_not_deferred(model: nn.Module) -> str | None:
    """Why `defer_head` would refuse a model; None where it would not."""
    head = _head_of(model)
    if head is None:
        return "it names no output head (get_output_embeddings)"
    if type(head) is DeferredHead:
        return "they are promised already"
    if type(head) is not nn.Linear:
        kind = f"{type(head).__module__}.{type(head).__qualname__}"
        return f"its output head is a {kind}, not a plain torch.nn.Linear"
    hooks = head._forward_hooks, head._forward_pre_hooks, head._backward_hooks, head._backward_pre_hooks
    if "forward" in vars(head) or any(hooks):
        return "something else already acts on its output head"
    if head.weight.device.type == "meta" or not head.weight.dtype.is_floating_point:
        return f"its output head holds {head.weight.dtype} on {head.weight.device.type}"
    return None


class HeadHandle:
    """Undoes `defer_head`.

    Args:
        model: The model that was changed.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model

    def remove(self) -> None:
        """Make the head what it was; a second time does nothing."""
        # An adapter that was added since may have put a copy of the head in its place.
        for module in self._model.modules():
            if type(module) is DeferredHead:
                cast("nn.Module", module).__class__ = nn.Linear

    def __enter__(self) -> HeadHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


class DeferredHead(nn.Linear):
    """A linear layer that promises its output in training."""

    def forward(self, hidden: Tensor) -> Any:
        """The promise, or without gradients the output."""
        if self.training and torch.is_grad_enabled():
            return DeferredLogits.promise(hidden, self.weight, self.bias)
        return super().forward(hidden)


def _head_of(model: nn.Module) -> nn.Module | None:
    """The module that makes the logits; where PEFT trains the whole of it, the copy that is trained."""
    outer: Any = model
    base = outer.get_base_model() if hasattr(outer, "get_base_model") else outer
    head = base.get_output_embeddings() if hasattr(base, "get_output_embeddings") else None
    copies = getattr(head, "modules_to_save", None)
    if head is None or copies is None:
        return head
    active = next(iter(head.active_adapters), None)
    return dict(copies.items()).get(active)
