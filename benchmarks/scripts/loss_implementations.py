"""What `fused_loss.py` measures: each implementation as one call, forward and backward."""

from __future__ import annotations

import importlib.util
import os
import shutil
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from caref.kernels import caref_loss as fused_caref_loss
from caref.kernels import linear_caref_loss
from caref.kernels.products import linear
from caref.losses import caref_loss

FUSED, FUSED_COMPILED = "fused", "fused-compiled"
FUSED_WITHOUT_ONEDNN = "fused-without-onednn"
FUSED_LEAN = "fused-lean"
EAGER, EAGER_COMPILED = "eager", "eager-compiled"
CROSS_ENTROPY = "linear+cross_entropy"
MATMULS, MATMULS_ONEDNN = "matmuls", "matmuls-onednn"
LIGER, CUT = "liger", "cut-cross-entropy"
LOGITS = "logits-"
LOGITS_CROSS_ENTROPY = f"{LOGITS}cross_entropy"
PACKAGES = {LIGER: "liger-kernel", CUT: "cut-cross-entropy"}

Step = Callable[[], Sequence[Tensor]]
"""A forward and backward pass; the gradients that it makes."""
Loss = Callable[[], Tensor]


class Shape(NamedTuple):
    tokens: int
    hidden: int
    vocab: int

    @classmethod
    def parse(cls, text: str) -> Shape:
        """From ``256x512x32128``: tokens, hidden, vocab."""
        sizes = text.split("x")
        if len(sizes) != 3 or not all(size.isdecimal() and int(size) for size in sizes):
            raise ArgumentTypeError(f"a shape is TOKENSxHIDDENxVOCAB, such as 256x512x32128, got {text}")
        return cls(*map(int, sizes))

    def __str__(self) -> str:
        return f"{self.tokens}x{self.hidden}x{self.vocab}"


class Setting(NamedTuple):
    device: str
    dtype: torch.dtype
    trained: bool
    """Whether the head's weight gets a gradient too."""
    compile: bool
    """Whether the implementations that need torch.compile are measured."""


class Implementations(NamedTuple):
    steps: dict[str, Step]
    left_out: dict[str, str]
    """Why the others are not measured."""


def bytes_needed(shape: Shape, setting: Setting, name: str) -> int:
    """An upper estimate: inputs, gradients, and what exists of the size of the logits at the peak."""
    itemsize = setting.dtype.itemsize
    head = shape.vocab * shape.hidden * (itemsize + (max(itemsize, 4) if setting.trained else 0))
    logits = shape.tokens * shape.vocab
    # The formula keeps a dozen in float32 for its backward pass; cross-entropy two and their gradient.
    held = 12 * max(itemsize, 4) if name.removeprefix(LOGITS).startswith(EAGER) else 3 * itemsize
    given = itemsize if name.startswith(LOGITS) else 0
    return head + 2 * shape.tokens * shape.hidden * itemsize + logits * (held + given)


def through_head(shape: Shape, setting: Setting) -> Implementations:
    """From hidden states and the weight of the output head, which gets a gradient only if it is trained."""
    torch.manual_seed(0)
    options = {"device": setting.device, "dtype": setting.dtype}
    hidden = torch.randn(shape.tokens, shape.hidden, **options).requires_grad_()
    weight = torch.randn(shape.vocab, shape.hidden, **options).mul_(shape.hidden**-0.5)
    weight.requires_grad_(setting.trained)
    labels = torch.randint(shape.vocab, (shape.tokens,), device=setting.device)
    others, left_out = _others(hidden, weight, labels, setting)

    def eager() -> Tensor:
        return caref_loss(F.linear(hidden, weight), labels)

    losses: dict[str, Loss] = {
        FUSED: lambda: linear_caref_loss(hidden, weight, labels),
        EAGER: eager,
        CROSS_ENTROPY: lambda: F.cross_entropy(F.linear(hidden, weight), labels),
        **others,
    }
    if setting.compile and (reason := why_not_compile(setting.device)):
        left_out |= dict.fromkeys((FUSED_COMPILED, EAGER_COMPILED), reason)
    elif setting.compile:
        losses[FUSED_COMPILED] = lambda: linear_caref_loss(hidden, weight, labels, fused="compiled")
        losses[EAGER_COMPILED] = torch.compile(eager, dynamic=False)
    if setting.device == "cpu" and setting.dtype == torch.float32:
        losses[FUSED_WITHOUT_ONEDNN] = lambda: _without_onednn(losses[FUSED])
    if setting.device.startswith("cuda"):
        # A chunk as large as the hidden states at most, as liger-kernel has it: less memory, and slower where
        # these are few.
        losses[FUSED_LEAN] = lambda: linear_caref_loss(
            hidden, weight, labels, memory_mib=hidden.nbytes / 2**20
        )
    steps = _with_backward(losses, [hidden, weight] if setting.trained else [hidden])
    steps[MATMULS] = _matmuls(F.linear, hidden.detach(), weight.detach(), setting.trained)
    if setting.device == "cpu" and setting.dtype == torch.float32:
        steps[MATMULS_ONEDNN] = _matmuls(linear, hidden.detach(), weight.detach(), setting.trained)
    return Implementations(steps, left_out)


def from_logits(shape: Shape, setting: Setting) -> Implementations:
    """From logits that exist, and get a gradient."""
    torch.manual_seed(0)
    logits = torch.randn(shape.tokens, shape.vocab, device=setting.device, dtype=setting.dtype)
    logits.requires_grad_()
    labels = torch.randint(shape.vocab, (shape.tokens,), device=setting.device)
    losses: dict[str, Loss] = {
        f"{LOGITS}{FUSED}": lambda: fused_caref_loss(logits, labels),
        f"{LOGITS}{EAGER}": lambda: caref_loss(logits, labels),
        LOGITS_CROSS_ENTROPY: lambda: F.cross_entropy(logits, labels),
    }
    return Implementations(_with_backward(losses, [logits]), {})


def _without_onednn(loss: Loss) -> Tensor:
    """With the matrix products that F.linear takes: what is won by fusing alone."""
    with torch.backends.mkldnn.flags(enabled=False):
        return loss()


def why_not_compile(device: str) -> str | None:
    compilers = (os.environ.get("CXX", "g++"), "clang++")
    if device == "cpu" and not any(shutil.which(name) for name in compilers):
        return "torch.compile needs a C++ compiler, and none is found"
    return None


def _with_backward(losses: dict[str, Loss], inputs: list[Tensor]) -> dict[str, Step]:
    def step(loss: Loss) -> Step:
        return lambda: torch.autograd.grad(loss(), inputs)

    return {name: step(loss) for name, loss in losses.items()}


def _matmuls(
    product: Callable[[Tensor, Tensor], Tensor], hidden: Tensor, weight: Tensor, trained: bool
) -> Step:
    """The products that no implementation can do without; the logits stand for their own gradient."""

    @torch.no_grad()
    def step() -> list[Tensor]:
        logits = product(hidden, weight)
        by_hidden = product(logits, weight.t())
        return [by_hidden, logits.t() @ hidden] if trained else [by_hidden]

    return step


def _others(
    hidden: Tensor, weight: Tensor, labels: Tensor, setting: Setting
) -> tuple[dict[str, Loss], dict[str, str]]:
    """Other packages' cross-entropy through the head; they need a GPU."""
    losses: dict[str, Loss] = {}
    left_out: dict[str, str] = {}
    if not setting.device.startswith("cuda"):
        return losses, left_out
    missing = "not installed (pip install {})"
    if importlib.util.find_spec("liger_kernel") is None:
        left_out[LIGER] = missing.format(PACKAGES[LIGER])
    else:
        from liger_kernel.transformers.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyLoss

        liger = LigerFusedLinearCrossEntropyLoss()
        losses[LIGER] = lambda: liger(weight, hidden, labels)
    if importlib.util.find_spec("cut_cross_entropy") is None:
        left_out[CUT] = missing.format(PACKAGES[CUT])
    elif setting.dtype == torch.float32:
        left_out[CUT] = "its backward pass takes half precision only"
    else:
        from cut_cross_entropy import linear_cross_entropy

        # As it comes: it leaves out small gradients, and in 25.1 makes the weight's for a frozen head too.
        losses[CUT] = lambda: linear_cross_entropy(hidden, weight, labels)
    return losses, left_out
