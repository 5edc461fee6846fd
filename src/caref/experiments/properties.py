"""The paper's table of regularizers, measured: differentiable, sparse, adaptive, architecture-free?

What is measured is an objective's *penalty*: the terms that are added to cross-entropy, with their default
weights. Where there is none, or where it depends on the label (label smoothing), it is the whole loss.
Distributions are those that the loss is about: softmax's, for entmax15 and sparsemax their own. All is done
in float64, from fixed seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from caref.losses import OBJECTIVES

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from caref.losses import Objective

Verdict = Literal["yes", "no", "depends"]

PROPERTIES = ("differentiable", "sparse", "adaptive", "architecture_free")

PAPER: dict[str, tuple[Verdict, Verdict, Verdict, Verdict]] = {
    "entropy": ("yes", "no", "no", "yes"),
    "label_smoothing": ("yes", "no", "no", "yes"),
    "entmax15": ("no", "yes", "no", "no"),
    "sparsemax": ("no", "yes", "no", "no"),
    "kl": ("yes", "no", "no", "yes"),
    "sced": ("yes", "yes", "yes", "yes"),
}
"""What the paper's table says of each objective, in the order of `PROPERTIES`."""

VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {"sced": ({"alpha": 1.0},)}
"""Settings that are measured beside the defaults."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One property of one objective.

    Attributes:
        verdict: ``"yes"``, ``"no"``, or ``"depends"`` where it holds from some starts only.
        evidence: The numbers behind it, in words.
        paper: What the paper says; None where it does not say.
        numbers: The numbers.
    """

    verdict: Verdict
    evidence: str
    paper: Verdict | None = None
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def disagrees(self) -> bool:
        """Whether the paper says otherwise."""
        return self.paper is not None and self.paper != self.verdict


@dataclass(frozen=True, slots=True)
class Row:
    """The properties of one objective.

    Attributes:
        objective: Its name, and the settings that are not its defaults.
        measured: ``"penalty"`` or ``"whole loss"``.
        findings: Property to what was found.
    """

    objective: str
    measured: str
    findings: dict[str, Finding]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def measure(names: Sequence[str] | None = None) -> list[Row]:
    """Measure the properties of objectives.

    Args:
        names: Which; without it all of the table, with their `VARIANTS`.

    Raises:
        CarefError: If there is no objective of that name, or its extra is not installed.
    """
    chosen = OBJECTIVES.names() if names is None else list(names)
    entries = [(name, settings) for name in chosen for settings in ({}, *VARIANTS.get(name, ()))]
    parts = [(name, settings, Part(OBJECTIVES.get(name)(**settings))) for name, settings in entries]
    models = {family: build() for family, build in FAMILIES.items()}
    rows = []
    for name, settings, part in parts:
        found = (differentiable(part), sparse(part), adaptive(part), architecture_free(part, models))
        paper = PAPER.get(name, (None,) * len(PROPERTIES))
        told = ", ".join(f"{key}={value:g}" for key, value in settings.items())
        findings = {
            key: Finding(each.verdict, each.evidence, said, each.numbers)
            for key, each, said in zip(PROPERTIES, found, paper, strict=True)
        }
        rows.append(Row(f"{name} ({told})" if told else name, part.name, findings))
    return rows


class Part:
    """What is measured of an objective: a value and a gradient per row of logits.

    Attributes:
        objective: Whose part it is.
        is_penalty: Whether it is the penalty; else it is the whole loss.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.is_penalty = True
        logits = normal(2, 12, seed=0)
        penalties = [term for term in self._terms(logits, torch.tensor([0, 1])) if not term.everywhere]
        by_label = (
            [self.values(logits, torch.tensor([label, label])) for label in (0, 1)] if penalties else []
        )
        self.is_penalty = bool(penalties) and torch.equal(*by_label)

    @property
    def name(self) -> str:
        """What is measured, in words."""
        return "penalty" if self.is_penalty else "whole loss"

    @property
    def follows_a_target(self) -> bool:
        """Whether something given, labels or a base, says where to go."""
        return not self.is_penalty or self.objective.needs_reference

    def values(self, logits: Tensor, labels: Tensor) -> Tensor:
        """One value per row, shape ``(rows,)``."""
        terms = self._terms(logits, labels)
        if self.is_penalty:
            terms = [term for term in terms if not term.everywhere]
        return torch.stack([term.weight * term.values for term in terms]).sum(0)

    def gradient(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The gradient that training uses, shape of `logits`."""
        logits = logits.detach().requires_grad_()
        return torch.autograd.grad(self.values(logits, labels).sum(), logits)[0]

    def _terms(self, logits: Tensor, labels: Tensor) -> list[Any]:
        given = {"reference_logits": base_of(logits)} if self.objective.needs_reference else {}
        return self.objective.terms(logits, labels, **given)


def normal(*shape: int, seed: int, scale: float = 2.0) -> Tensor:
    """Normally distributed logits, the same every time."""
    return scale * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def base_of(logits: Tensor) -> Tensor:
    """What stands for the base's logits: the same random row at every position."""
    return normal(logits.shape[-1], seed=7).expand(logits.shape)


# --- differentiable ---------------------------------------------------------------------------------

TOLERANCE = 1e-6


def differentiable(part: Part) -> Finding:
    """Is the gradient the value's derivative, and is it continuous?

    1. At 24 random distributions over 12 tokens: autograd's gradient against central differences.
    2. Along 8 random lines through the logits: where the gradient changes most between two points of a
       grid, the interval is halved until it is 1e-9 long, each time keeping the half with the larger
       change. A change that is left is a jump. No kink has to be known in advance: lines cross P = 1/V
       and the boundaries of a sparse support. The change of the curvature is looked at likewise, down to
       an interval of 1e-4; it is told, and does not decide.

    Both are relative to the largest gradient met. "yes" if both are below 1e-6.
    """
    points = normal(24, 12, seed=1)
    labels = torch.arange(24) % 12
    gradient = part.gradient(points, labels)
    step = 1e-5
    shifted = points.unsqueeze(1) + step * torch.eye(12, dtype=torch.float64)
    back = points.unsqueeze(1) - step * torch.eye(12, dtype=torch.float64)
    wide = labels.repeat_interleave(12)
    difference = part.values(shifted.flatten(0, 1), wide) - part.values(back.flatten(0, 1), wide)
    numeric = difference.reshape(24, 12) / (2 * step)
    error = ((gradient - numeric).abs().max() / gradient.abs().max()).item()

    ends = normal(8, 12, seed=2), normal(8, 12, seed=3)
    jumps, bends, slopes = [], [], []
    for start, end, label in zip(*ends, labels[:8], strict=True):

        def along(t: Tensor, start: Tensor = start, end: Tensor = end, label: Tensor = label) -> Tensor:
            return part.gradient(start + t.unsqueeze(-1) * (end - start), label.expand(t.shape))

        def curvature(t: Tensor, along: Callable[[Tensor], Tensor] = along) -> Tensor:
            return (along(t + 1e-6) - along(t - 1e-6)) / 2e-6

        scale = along(torch.linspace(0, 1, 65, dtype=torch.float64)).abs().max().item()
        jumps.append(largest_jump(along, 1e-9) / scale)
        bends.append(largest_jump(curvature, 1e-4) / scale)
        slopes.append(curvature(torch.linspace(0, 1, 65, dtype=torch.float64)).abs().max().item() / scale)
    jump, bend = max(jumps), max(bends) / max(slopes)
    numbers = {"error": error, "gradient_jump": jump, "curvature_jump": bend}
    evidence = f"error {error:.0e}, gradient jumps by {jump:.0e}, curvature by {bend:.0e}"
    if part.objective.has_detached_weight and not part.is_penalty:
        evidence += "; a weight is held constant in the gradient"
    return Finding("yes" if max(error, jump) < TOLERANCE else "no", evidence, numbers=numbers)


def largest_jump(path: Callable[[Tensor], Tensor], narrow: float) -> float:
    """The largest change of `path` over [0, 1] that is left over an interval of length `narrow`.

    Args:
        path: Points, shape ``(n,)``, to vectors, shape ``(n, d)``.
        narrow: Where to stop halving.
    """
    grid = torch.linspace(0, 1, 65, dtype=torch.float64)
    changes = path(grid).diff(dim=0).abs().amax(-1)
    largest = 0.0
    for index in changes.topk(2).indices.tolist():
        low, high = grid[index], grid[index + 1]
        while high - low > narrow:
            middle = (low + high) / 2
            first, second = path(torch.stack([low, middle, high])).diff(dim=0).abs().amax(-1)
            low, high = (low, middle) if first > second else (middle, high)
        largest = max(largest, path(torch.stack([low, high])).diff(dim=0).abs().max().item())
    return largest


# --- sparse -----------------------------------------------------------------------------------------

VOCAB = 200
THRESHOLD = 1e-6
TOP = 10
TARGET = (0.4, 0.25, 0.15, 0.12, 0.08)
"""The probabilities of the first five tokens, where a loss needs a target."""


def starts() -> dict[str, Tensor]:
    """Start distributions over 200 tokens."""
    found = {f"softmax of normal x {scale:g}": normal(VOCAB, seed=4, scale=scale) for scale in (0.5, 2, 4)}
    for p in (0.3, 0.6, 0.9):
        logits = torch.zeros(VOCAB, dtype=torch.float64)
        logits[0] = math.log(p / (1 - p) * (VOCAB - 1))
        found[f"one token {p:g}, the rest equal"] = logits
    return {name: logits.softmax(-1) for name, logits in found.items()}


def sparse(part: Part) -> Finding:
    """Does the support or the tail shrink when this alone is minimised?

    From six start distributions over 200 tokens the logits follow the negative gradient: 600 steps along
    it, whose length falls from 0.4 to 0 as a cosine does. The length and not the size of the gradient is
    set, so that weights and units do not matter.

    A penalty shrinks a distribution if its tail, the mass outside the 10 most likely tokens, falls to less
    than 0.99 of what it was, or if the tail does not grow and the support falls, the number of tokens with
    a probability above 1e-6. Where the loss has labels or a base to follow, a small tail only tells what
    these are: there the support is the number of tokens whose probability is not exactly 0, and it alone
    counts. Labels are drawn from five tokens.

    "yes" if it shrinks from every start, "no" if from none.
    """
    names, probabilities = list(starts()), torch.stack(list(starts().values()))
    begin = part.objective.scores(probabilities)
    end = flow(part, begin)
    low = 0.0 if part.follows_a_target else THRESHOLD
    distribution = part.objective.distribution
    support = [_support(distribution(each), low) for each in (begin, end)]
    tail = [_tail(distribution(each)) for each in (begin, end)]
    shrinks = support[1] < support[0]
    if not part.follows_a_target:
        shrinks = (shrinks & (tail[1] <= tail[0])) | (tail[1] < 0.99 * tail[0])
    count, total = int(shrinks.sum()), len(names)
    verdict: Verdict = "yes" if count == total else "no" if count == 0 else "depends"
    evidence = f"shrinks from {count} of {total} starts; support {_span(support[0])} to {_span(support[1])}, "
    evidence += f"tail {tail[0].mean():.2f} to {tail[1].mean():.2f} on average"
    softmax = end.softmax(-1)
    if not torch.equal(_support(softmax, low), support[1]):
        evidence += f"; softmax of the same scores: support {_span(_support(softmax, low))}, "
        evidence += f"tail {_tail(softmax).mean():.2f}"
    numbers = {
        name: {
            "support": [int(each[row]) for each in support],
            "tail": [each[row].item() for each in tail],
            "shrinks": bool(shrinks[row]),
        }
        for row, name in enumerate(names)
    }
    return Finding(verdict, evidence, numbers=numbers)


def flow(part: Part, logits: Tensor, *, steps: int = 600, length: float = 0.4) -> Tensor:
    """Where the logits end that follow the negative gradient, rows each by themselves."""
    rows = len(logits)
    if part.is_penalty:
        labels, weights = torch.zeros(rows, dtype=torch.int64), None
    else:
        labels = torch.arange(len(TARGET)).repeat(rows)
        weights = torch.tensor(TARGET, dtype=torch.float64).repeat(rows).unsqueeze(-1)
    arrived: Tensor | None = None
    for step in range(steps):
        if weights is None:
            gradient = part.gradient(logits, labels)
        else:
            each = weights * part.gradient(logits.repeat_interleave(len(TARGET), dim=0), labels)
            gradient = each.reshape(rows, len(TARGET), -1).sum(1)
        size = gradient.norm(dim=-1, keepdim=True)
        # Below this it is rounding: the row has arrived.
        arrived = 1e-12 * size if arrived is None else arrived
        direction = torch.where(size > arrived, gradient / size.clamp(min=1e-300), 0.0)
        logits = logits - length * (1 + math.cos(math.pi * step / steps)) / 2 * direction
    return logits


def _support(probabilities: Tensor, low: float) -> Tensor:
    return (probabilities > low).sum(-1)


def _tail(probabilities: Tensor) -> Tensor:
    return (1 - probabilities.topk(TOP, dim=-1).values.sum(-1)).clamp(min=0)


def _span(counts: Tensor) -> str:
    low, high = int(counts.min()), int(counts.max())
    return str(low) if low == high else f"{low}-{high}"


# --- adaptive ---------------------------------------------------------------------------------------


def equal_entropies() -> Tensor:
    """Two distributions over 8 tokens with the same entropy, and 0.2 for token 0 in both; shape (2, 8).

    Token 1, the label, has 0.4 in the first and 0.05 in the second.
    """
    one = torch.tensor([0.2, 0.4, *[0.4 / 6] * 6], dtype=torch.float64)

    def other(p: float) -> Tensor:
        return torch.tensor([0.2, 0.05, p, *[(0.75 - p) / 5] * 5], dtype=torch.float64)

    low, high = 0.15, 0.75  # the entropy falls with p
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _entropy(other(middle)) > _entropy(one) else (low, middle)
    return torch.stack([one, other(low)])


def adaptive(part: Part) -> Finding:
    """Does the gradient of a token depend on more than its own probability and the entropy?

    Two distributions have the same entropy and give token 0, which is not the label, the same
    probability. "yes" if the gradients on its logit differ by more than 1e-6 of the larger one.

    The paper's caption says less: that the penalty varies with the token's probability. The second number
    is by how much the gradients of two tokens with different probabilities differ within a distribution.
    """
    logits = part.objective.scores(equal_entropies())
    gradients = part.gradient(logits, torch.tensor([1, 1]))
    gap = _gap(gradients[0, 0], gradients[1, 0])
    varies = _gap(gradients[0, 0], gradients[0, 2])
    evidence = f"the gradients differ by {100 * gap:.2g} %" if gap > TOLERANCE else "the gradients are equal"
    numbers = {"gap": gap, "gap_between_tokens": varies}
    return Finding("yes" if gap > TOLERANCE else "no", evidence, numbers=numbers)


def _entropy(probabilities: Tensor) -> float:
    return -(probabilities * probabilities.log()).sum().item()


def _gap(one: Tensor, other: Tensor) -> float:
    return ((one - other).abs() / torch.maximum(one.abs(), other.abs()).clamp(min=1e-300)).item()


# --- architecture-free ------------------------------------------------------------------------------


def architecture_free(part: Part, models: Mapping[str, PreTrainedModel]) -> Finding:
    """Does it train any model, from its logits and the labels alone?

    On a tiny random model of each family the whole objective and its gradient on every trained weight
    that the logits depend on must be finite, and some gradient must not be 0. "yes" if that holds for
    every family and nothing but logits and labels is needed.
    """
    objective = part.objective
    finite = {family: _trains(objective, model) for family, model in models.items()}
    count = sum(finite.values())
    evidence = f"finite on {count} of {len(finite)} families"
    if objective.needs_reference:
        evidence += "; needs the base's logits too"
    logits = normal(1, 12, seed=5)
    if not torch.equal(objective.distribution(logits), logits.softmax(-1)):
        evidence += "; a decoder of its own only to decode from its sparse distribution"
    holds = count == len(finite) and not objective.needs_reference
    return Finding("yes" if holds else "no", evidence, numbers={"finite": finite})


def _trains(objective: Objective, model: PreTrainedModel) -> bool:
    tokens = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])
    inputs = {"input_ids": tokens}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = tokens
    model.zero_grad(set_to_none=True)
    logits = model(**inputs).logits
    given = {"reference_logits": logits.detach().roll(1, -1)} if objective.needs_reference else {}
    value = objective(logits, tokens.roll(-1, -1), **given)
    value.backward()
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    finite = bool(value.isfinite()) and all(bool(each.isfinite().all()) for each in gradients)
    return finite and any(bool((each != 0).any()) for each in gradients)


def _t5() -> PreTrainedModel:
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(
        T5Config(vocab_size=40, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    )


def _bert2bert() -> PreTrainedModel:
    from transformers import BertConfig, EncoderDecoderConfig, EncoderDecoderModel

    encoder, decoder = (
        BertConfig(
            vocab_size=40,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=16,
        )
        for _ in range(2)
    )
    return EncoderDecoderModel(EncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder))


def _bart() -> PreTrainedModel:
    from transformers import BartConfig, BartForConditionalGeneration

    return BartForConditionalGeneration(
        BartConfig(
            vocab_size=40,
            d_model=16,
            encoder_layers=1,
            decoder_layers=1,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            max_position_embeddings=16,
        )
    )


def _gpt2() -> PreTrainedModel:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=40, n_embd=16, n_layer=1, n_head=2, n_positions=16, bos_token_id=0, eos_token_id=1
        )
    )


def _llama() -> PreTrainedModel:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=40,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=16,
        )
    )


FAMILIES: dict[str, Callable[[], PreTrainedModel]] = {
    "t5": _t5,
    "bert2bert": _bert2bert,
    "bart": _bart,
    "gpt2": _gpt2,
    "llama": _llama,
}
"""Tiny random models, built from configurations."""


# --- words ------------------------------------------------------------------------------------------


def verdict_text(finding: Finding) -> str:
    """A verdict as a table shows it, with the paper's where that is another."""
    if finding.disagrees:
        return f"{finding.verdict} (paper: {finding.paper})"
    return finding.verdict if finding.paper is None else f"{finding.verdict} (as the paper)"


def as_markdown(rows: Sequence[Row]) -> str:
    """A table with the evidence in its cells; what disagrees with the paper in bold."""
    lines = [
        "| objective | measured | " + " | ".join(key.replace("_", "-") for key in PROPERTIES) + " |",
        "| --- " * (2 + len(PROPERTIES)) + "|",
    ]
    for row in rows:
        cells = []
        for key in PROPERTIES:
            finding = row.findings[key]
            told = verdict_text(finding)
            cells.append(f"{f'**{told}**' if finding.disagrees else told}: {finding.evidence}")
        lines.append(f"| {row.objective} | {row.measured} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
