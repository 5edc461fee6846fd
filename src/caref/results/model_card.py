"""What a complete run says of its weights: the model card beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from caref.results.result import RunResult

Form = Literal["adapter", "model"]

_PEFT = """\
from peft import PeftModel
from transformers import {auto_class}, AutoTokenizer

base = {auto_class}.from_pretrained({base}, dtype="float32")
model = PeftModel.from_pretrained(base, "{place}")
tokenizer = AutoTokenizer.from_pretrained({tokenizer})"""

_PLAIN = """\
from transformers import {auto_class}, AutoTokenizer

model = {auto_class}.from_pretrained("{place}", dtype="float32")
tokenizer = AutoTokenizer.from_pretrained({tokenizer})"""

SHOWN = ("accuracy", "f1_given_right", "nbert", "broken", "candidate_accuracy", "calibration_error")


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What a card says beyond the run's result.

    Attributes:
        base: What the base model is loaded by.
        base_kind: Whether that is an id on the hub, a folder, or the name of a model that comes with caref.
        auto_class: The class of transformers that loads it.
        example_input: An input as the run's prompt writes it.
        separator: What stands between answer and explanation.
    """

    base: str
    base_kind: Literal["hub", "folder", "packaged"]
    auto_class: str
    example_input: str
    separator: str


def model_card(
    result: RunResult,
    spec: Mapping[str, Any],
    facts: CardFacts,
    *,
    form: Form,
    place: str,
    with_tokenizer: bool = False,
) -> str:
    """The card in Markdown, with the metadata that the hub reads at its head.

    Args:
        result: The run's.
        spec: What was asked, every setting resolved.
        facts: About the base model and the prompt.
        form: Whether an adapter or a whole model lies beside it.
        place: Where that is, as the text on how to load it writes it: a hub id, or a folder's name.
        with_tokenizer: Whether the tokenizer lies beside it too.
    """
    from huggingface_hub import EvalResult, ModelCardData

    values = {name: result.value(name) for name in SHOWN if name in result.value_names}
    known = {name: value for name, value in values.items() if value is not None}
    data = ModelCardData(
        base_model=facts.base if facts.base_kind == "hub" else None,
        library_name="peft" if form == "adapter" else "transformers",
        tags=["caref", "explanations", result.method, result.objective],
        model_name=f"{result.model} {result.task} {result.method} {result.objective}",
        eval_results=[
            EvalResult(
                task_type="text-generation",
                dataset_type=result.task,
                dataset_name=result.task,
                metric_type=name,
                metric_value=round(value, 4),
            )
            for name, value in known.items()
        ],
    )
    packaged = facts.base_kind == "packaged"
    base = f'ModelSource("{facts.base}").location' if packaged else f'"{facts.base}"'
    tokenizer = f'"{place}"' if with_tokenizer else base
    loading = (_PEFT if form == "adapter" else _PLAIN).format(
        auto_class=facts.auto_class, base=base, place=place, tokenizer=tokenizer
    )
    if "ModelSource" in loading:
        loading = f"from caref.models.loading import ModelSource\n{loading}"
    rows = "\n".join(f"| {name} | {value:.4g} |" for name, value in known.items())
    encoder = result.metrics["nbert"].fingerprint.get("encoder") if "nbert" in result.metrics else None
    share = 100 * result.trainable_parameters / result.total_parameters
    settings = _settings(spec.get("objective_settings", {}))
    name = facts.base if facts.base_kind == "hub" else result.model
    trained = (
        f"{_WHAT[form]} of `{name}`, trained on {result.train_examples} examples of `{result.task}` with the "
        f"method `{result.method}` ({result.trainable_parameters:,} of {result.total_parameters:,} "
        f"parameters, {share:.3g} %) and the objective `{result.objective}`{settings}. "
        f"Targets: {result.supervision.replace('_', ' ')}."
    )
    measured = (
        f"{f'F1 and nBERT by {encoder}. ' if encoder else ''}One split is one draw: numbers move by several "
        "points from draw to draw. Whether an explanation is why the model gave its answer is not among what "
        "was measured."
    )
    return f"""---
{data.to_yaml()}
---

# {result.model}, tuned to answer and explain: {result.task}

{trained}

## How to load it

```python
{loading}
```

An input has this form; the answer comes first, then `{facts.separator.strip()}`, then the explanation:

```text
{facts.example_input}
```

## What was measured

On {result.evaluated_examples} examples, seed {result.seed} (split {result.split_checksum[:12]}):

| measure | value |
| --- | ---: |
{rows}

{measured}

Trained with caref, run `{result.run_id}`; `spec.json` of the run holds every setting.
"""


_WHAT: dict[Form, str] = {"adapter": "An adapter", "model": "A tuned copy"}


def _settings(settings: Mapping[str, Any]) -> str:
    told = ", ".join(f"{name} {value}" for name, value in settings.items() if value is not None)
    return f" ({told})" if told else ""
