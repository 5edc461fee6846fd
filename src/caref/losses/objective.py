"""The interface of an objective: what a Trainer calls, whatever the terms are."""

# Annotations are kept as objects, not strings: they are the types of the command line's flags.
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from caref.kernels.backends import Backend
from caref.kernels.deferred import DeferredLogits
from caref.kernels.fused import fused_loss
from caref.losses.penalties import Penalties
from caref.losses.reduction import (
    Positions,
    Reduction,
    check_choice,
    kept_positions,
    reduce_positions,
)
from caref.losses.span import Span, span_mask

Fused = Literal["auto", "off", Backend]
"""How an objective is computed; see `Objective`."""


class Term(NamedTuple):
    """One summand of an objective."""

    name: str
    """What it is called in the logs."""
    values: Tensor
    """Per position and unweighted, shape ``(...)``, finite at ignored positions too."""
    weight: float = 1.0
    """What it is multiplied by in the sum."""
    everywhere: bool = False
    """Whether it stays on all kept positions when penalties are limited to a span."""


def limit_penalties(terms: list[Term], where: Tensor | None) -> list[Term]:
    """The terms with penalties set to 0 outside `where`; unchanged if that is None."""
    if where is None:
        return terms
    return [t if t.everywhere else t._replace(values=t.values.masked_fill(~where, 0.0)) for t in terms]


def weighted_sum(terms: list[Term]) -> Tensor:
    """``sum weight * values`` per position, shape ``(...)``."""
    return torch.stack([term.weight * term.values for term in terms]).sum(0)


@dataclass(eq=False, kw_only=True)
class Objective(ABC):
    """A loss made of named terms, callable as `compute_loss_func` of `transformers.Trainer`.

    A subclass is a dataclass: its fields are its settings, checked in `__post_init__`, and
    `terms` is its equation.

    Args:
        span: Where penalties apply: "all" target positions, the "answer" or the "explanation".
        separator_ids: Token ids that end the answer, needed for a span other than "all".
        shift: Compare logits at one position with the label at the next, for causal models.
        ignore_index: The label of padding and prompt positions.
        reduction: "mean" over kept positions, "sum" or "none".
        fused: "auto" computes by a fused kernel where the objective has one, "off" by the formula as it
            stands; "chunked", "compiled" and "triton" ask for one kernel.
    """

    needs_reference: ClassVar[bool] = False
    """Whether it compares with the logits of the model that training starts from."""
    has_detached_weight: ClassVar[bool] = False
    """Whether a factor that depends on the logits is held constant: then the gradient that trains is not
    the derivative of the value."""

    span: Span = "all"
    separator_ids: list[int] | None = None
    shift: bool = False
    ignore_index: int = -100
    reduction: Reduction = "mean"
    fused: Fused = "auto"

    def __post_init__(self) -> None:
        check_choice("span", self.span, get_args(Span))
        check_choice("fused", self.fused, get_args(Fused))
        check_choice("reduction", self.reduction, get_args(Reduction))
        if self.fused not in ("auto", "off") and not self.has_kernel:
            raise ValueError(f"{type(self).__name__} has no fused kernel; fused={self.fused!r} asks for one")
        if self.separator_ids is not None:
            self.separator_ids = [int(token) for token in self.separator_ids]
        if self.span != "all" and not self.separator_ids:
            raise ValueError(
                f"span={self.span!r} needs separator_ids, the token ids that end the answer, "
                f"got {self.separator_ids}"
            )
        self.progress: float | None = None
        self.ran: str | None = None
        self._sums: dict[str, Tensor] = {}
        self._positions: Tensor | None = None

    @abstractmethod
    def terms(self, logits: Tensor, labels: Tensor) -> list[Term]:
        """The terms of the objective at every position.

        With `needs_reference` it has a third argument, ``reference_logits``, like the first.

        Args:
            logits: Shape ``(..., vocab)``, float32 or float64, 0 at ignored positions.
            labels: Shape ``(...)``, int64, 0 at ignored positions.
        """

    def penalties(self) -> Penalties | None:
        """What a fused kernel computes in the place of `terms`; None where there is no such kernel."""
        return None

    @property
    def has_kernel(self) -> bool:
        """Whether a fused kernel computes this objective."""
        return type(self).penalties is not Objective.penalties

    def __call__(
        self,
        logits: Any,
        labels: Tensor,
        *,
        reference_logits: Tensor | None = None,
        mask: Tensor | None = None,
        num_items_in_batch: int | Tensor | None = None,
    ) -> Tensor:
        """The objective's value, differentiable in the logits; `ran` says afterwards what computed it.

        Args:
            logits: Scores, shape ``(..., tokens, vocab)``, or a model's output that has them
                as ``.logits`` or ``["logits"]``. A model may also promise
                them: `caref.kernels.defer_head`.
            labels: Target ids, shape ``(..., tokens)``, int64.
            reference_logits: The base model's scores, like `logits`, for an objective with
                `needs_reference`. Without them they are looked for in the model's output, as
                ``.reference_logits`` or ``["reference_logits"]``. No gradient goes into them.
            mask: Further limits the positions that count, shape of `labels`, bool.
            num_items_in_batch: The number of target positions in the whole effective batch.
                ``"mean"`` divides by it, so that the sum over micro-batches is their joint
                mean. The Trainer passes it.

        Returns:
            A scalar, or one value per position for reduction ``"none"`` (one position fewer
            with `shift`). With no kept position it is 0 and so is its gradient.

        Raises:
            TypeError: If there are no logits, or a dtype is wrong.
            ValueError: If the shapes disagree, a label lies outside the vocabulary, the reference is needed
                and absent, a warm-up was asked for and `set_progress` was never called, or the kernel
                asked for cannot run.
        """
        reference = self._reference_of(logits, reference_logits)
        logits = _logits_of(logits)
        if not isinstance(labels, Tensor):
            raise TypeError(
                f"labels must be a tensor, got {type(labels).__name__}; does the batch hold labels?"
            )
        if self.shift:
            logits, labels = logits[..., :-1, :], labels[..., 1:]
            reference = None if reference is None else reference[..., :-1, :]
            mask = None if mask is None else mask[..., 1:]
        span = span_mask(labels, self.span, self.separator_ids)
        # A compiler that traces this fuses by itself.
        penalties = None if self.fused == "off" or torch.compiler.is_compiling() else self.penalties()
        if penalties is not None:
            return self._fused(logits, labels, penalties, mask, span, num_items_in_batch)
        self.ran = "eager"
        positions = kept_positions(
            logits if isinstance(logits, Tensor) else logits.compute(), labels, self.ignore_index, mask
        )
        given = {} if reference is None else {"reference_logits": _like(reference, positions)}
        terms = self.terms(positions.logits, positions.labels, **given)
        terms = limit_penalties(terms, span)
        if torch.is_grad_enabled():
            kept = {term.name: term.values.detach().masked_fill(~positions.keep, 0.0) for term in terms}
            self._note({name: values.sum() for name, values in kept.items()}, positions.keep.sum())
        return reduce_positions(weighted_sum(terms), positions.keep, self.reduction, num_items_in_batch)

    def _fused(
        self,
        logits: Tensor | DeferredLogits,
        labels: Tensor,
        penalties: Penalties,
        mask: Tensor | None,
        span: Tensor | None,
        num_items_in_batch: int | Tensor | None,
    ) -> Tensor:
        loss = fused_loss(
            logits,
            labels,
            penalties,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            mask=mask,
            penalty_mask=span,
            num_items_in_batch=num_items_in_batch,
            backend=self.fused,
        )
        self.ran = loss.ran
        if torch.is_grad_enabled():
            self._note(loss.sums, loss.positions)
        return loss.value

    def distribution(self, logits: Tensor) -> Tensor:
        """The distribution that the loss is about, shape of `logits`: softmax, for all but sparse losses."""
        return logits.softmax(-1)

    def scores(self, probabilities: Tensor) -> Tensor:
        """Logits whose `distribution` has these probabilities, all above 0; shape of `probabilities`."""
        return probabilities.log()

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, ready for JSON: ``type(loss)(**loss.settings)`` is its like."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_progress(self, fraction: float) -> None:
        """Tell the objective how much of the training is done, within [0, 1]; a warm-up needs it.

        Raises:
            ValueError: If `fraction` lies outside [0, 1].
        """
        if not 0 <= fraction <= 1:
            raise ValueError(f"progress must lie in [0, 1], got {fraction}")
        self.progress = float(fraction)

    def warmed_up(self, weight: float, warmup: float) -> float:
        """The weight at the present progress when it rises from 0 over the fraction `warmup`.

        Without gradients (an evaluation) and without progress it is the full weight.
        """
        if warmup == 0:
            return weight
        if self.progress is None:
            if not torch.is_grad_enabled():
                return weight
            raise ValueError(
                f"a warm-up over {warmup:g} of the training needs to know its progress: call "
                "set_progress(fraction) before each step, or give the Trainer "
                "caref.training.callbacks.ObjectiveCallback(loss)"
            )
        return weight * min(1.0, self.progress / warmup)

    def pop_components(self) -> dict[str, float]:
        """Unweighted mean of each term since the last call, then start anew.

        Means are over the kept target positions of every call made with gradients enabled
        (training, not evaluation), however these were split into batches. A penalty counts as
        0 outside its span, so that the weighted sum of the components is the mean loss. This
        waits for the device, once; the calls themselves never do.

        Returns:
            Name of the term to its mean; empty if there was no call.
        """
        if self._positions is None:
            return {}
        means = (torch.stack(list(self._sums.values())) / self._positions.clamp(min=1)).tolist()
        components = dict(zip(self._sums, means, strict=True))
        self._sums, self._positions = {}, None
        return components

    def _reference_of(self, outputs: Any, given: Tensor | None) -> Tensor | None:
        if not self.needs_reference:
            return None
        if given is None and isinstance(outputs, Mapping):
            given = outputs.get("reference_logits")
        elif given is None:
            given = getattr(outputs, "reference_logits", None)
        if not isinstance(given, Tensor):
            raise ValueError(
                f"{type(self).__name__} needs the base model's logits: pass reference_logits=..., or train "
                "within caref.training.reference.with_reference_logits(model)"
            )
        return given

    def _note(self, sums: dict[str, Tensor], positions: Tensor) -> None:
        """Remember the terms' sums for `pop_components`."""
        for name, total in sums.items():
            self._sums[name] = self._sums[name] + total if name in self._sums else total
        self._positions = positions if self._positions is None else self._positions + positions


def check_warmup(name: str, fraction: float) -> None:
    """Raise unless `fraction` lies within [0, 1)."""
    if not 0 <= fraction < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {fraction}")


def _like(reference: Tensor, positions: Positions) -> Tensor:
    """The reference as the logits are: their dtype, 0 at ignored positions, and no gradient."""
    if reference.shape != positions.logits.shape:
        raise ValueError(
            f"reference_logits must have shape {tuple(positions.logits.shape)}, that of logits, "
            f"got {tuple(reference.shape)}"
        )
    return reference.detach().to(positions.logits).masked_fill(~positions.keep.unsqueeze(-1), 0.0)


def _logits_of(outputs: Any) -> Tensor | DeferredLogits:
    if isinstance(outputs, Mapping) and "logits" in outputs:
        outputs = outputs["logits"]
    elif not isinstance(outputs, Tensor | DeferredLogits) and hasattr(outputs, "logits"):
        outputs = outputs.logits
    if not isinstance(outputs, Tensor | DeferredLogits):
        raise TypeError(
            f"expected logits, or a model's output that holds them as 'logits', got {type(outputs).__name__}"
        )
    return outputs
