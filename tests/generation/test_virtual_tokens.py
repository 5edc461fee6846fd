"""Adapters with virtual tokens are answered with as PEFT trains them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from peft import CPTConfig, PrefixTuningConfig, get_peft_model

from caref.errors import CarefError
from caref.generation.answering import answer
from caref.generation.decoding import decode, greedy_config
from caref.generation.reading import needs_equal_lengths, read
from caref.generation.scoring import score_answers
from caref.models.loading import quiet_peft

TOKENS = 6
TEXTS = (
    "the dog",
    "why is the sky blue? who keeps the money of a man in the bank of the river",
    "a woman sees the cat",
    "yes or no",
)
CANDIDATES = ("bank", "bank account", "yes", "no money in the house")


@pytest.fixture(params=["prefix", "prompt", "p-tuning"])
def adapted(fresh: Any, request: pytest.FixtureRequest) -> Any:
    fresh.adapt(request.param)
    return fresh


def test_decoding_is_peft_s_forward_pass(adapted: Any) -> None:
    prefixes = [[], [4, 7], [30], [4, 8]]
    for given in (None, prefixes):
        rows = decode(adapted.read(TEXTS), greedy_config(adapted.model, TOKENS), prefixes=given)
        for text, row, prefix in zip(TEXTS, rows, given or [[]] * 4, strict=True):
            tokens = row.tokens
            if len(row.log_probs) > len(tokens):
                tokens = [*tokens, adapted.encoder.end_id]
            expected = adapted.log_probs(text, [*prefix, *tokens])[len(prefix) :]
            assert row.log_probs == pytest.approx(expected, abs=1e-4)
            best = adapted.distributions(text, [*prefix, *tokens])[len(prefix) :].max(-1).values
            assert row.log_probs == pytest.approx(best.tolist(), abs=1e-4)


def test_scores_are_peft_s_forward_pass(adapted: Any) -> None:
    ids = [adapted.encoder.answer_ids(candidate) for candidate in CANDIDATES]
    for text, row in zip(TEXTS, score_answers(adapted.read(TEXTS), [ids] * 4), strict=True):
        for tokens, score in zip(ids, row, strict=True):
            assert score.log_prob_sum == pytest.approx(math.fsum(adapted.log_probs(text, tokens)), abs=1e-4)


def test_the_virtual_tokens_matter(fresh: Any) -> None:
    config = greedy_config(fresh.model, TOKENS)
    plain = [row.log_probs[0] for row in decode(fresh.read(TEXTS), config)]
    fresh.adapt("prefix")
    prefixed = [row.log_probs[0] for row in decode(fresh.read(TEXTS), config)]
    assert all(abs(one - other) > 1e-3 for one, other in zip(plain, prefixed, strict=True))


@pytest.mark.parametrize("kind", ["prefix", "prompt"])
def test_it_is_what_peft_generates(fresh: Any, kind: str) -> None:
    fresh.adapt(kind)
    config = greedy_config(fresh.model, TOKENS)
    rows = decode(fresh.read(TEXTS), config)
    for text, row in zip(TEXTS, rows, strict=True):
        assert row.tokens == fresh.generated(text, config)


def test_answer_only(adapted: Any) -> None:
    """The answer, the separator put after it, and how the model goes on."""
    questions = [adapted.encoder.question(str(n), text, CANDIDATES) for n, text in enumerate(TEXTS)]
    given = answer(adapted.model, adapted.answer_only, questions, max_new_tokens=TOKENS)
    config = greedy_config(adapted.model, TOKENS)
    separator = adapted.encoder.separator_ids()
    for question, one in zip(questions, given, strict=True):
        reading = read(adapted.model, [question.input_ids])
        (first,) = decode(reading, config)
        (more,) = decode(reading, config, prefixes=[[*first.tokens, *separator]])
        told = adapted.encoder.text(more.tokens)
        answered = adapted.encoder.text(first.tokens)
        assert one.text == (f"{answered} because {told}" if told else answered)


def test_a_prefix_of_an_encoder_decoder_in_the_shape_of_a_decoder_only(tiny_t5: Any) -> None:
    from caref.models.loading import ModelSource, load_model

    config = PrefixTuningConfig(task_type="SEQ_2_SEQ_LM", num_virtual_tokens=3, num_transformer_submodules=1)
    with quiet_peft():
        model = get_peft_model(load_model(ModelSource(str(tiny_t5))), config).eval()
    with pytest.raises(CarefError, match="num_transformer_submodules=2"):
        decode(read(model, [[4, 5, 1]]), greedy_config(model, TOKENS))


def test_adapters_that_cannot_answer(tiny_gpt2: Any) -> None:
    from caref.models.loading import ModelSource, load_model

    config = CPTConfig(
        task_type="CAUSAL_LM", cpt_token_ids=[3, 4], cpt_mask=[1, 1], cpt_tokens_type_mask=[1, 2]
    )
    with quiet_peft():
        model = get_peft_model(load_model(ModelSource(str(tiny_gpt2))), config).eval()
    with pytest.raises(CarefError, match="type CPT cannot be used to answer"):
        read(model, [[4, 5, 1]])
    assert needs_equal_lengths(model.get_base_model()) is False
