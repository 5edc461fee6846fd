"""Is an objective architecture-free: does it train any model from its logits alone?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch

from caref.properties.part import Finding, Part, normal

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from caref.losses import Objective


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
