from __future__ import annotations

from typing import Any

import pytest
from transformers import GenerationConfig

from caref.generation.decoding import decode, greedy_config

TOKENS = 8


def ending(tiny: Any, texts: tuple[str, ...]) -> GenerationConfig:
    """A configuration in which some rows end early: a token that is often written ends them."""
    config = greedy_config(tiny.model, TOKENS)
    written = [token for row in decode(tiny.read(texts), config) for token in row.tokens[2:7]]
    often = max(set(written), key=lambda token: (written.count(token), token))
    config.eos_token_id = [*config.eos_token_id, often]
    return config


@pytest.fixture(scope="module")
def texts() -> tuple[str, ...]:
    return (
        "the dog",
        "why is the sky blue? who keeps the money of a man in the bank of the river",
        "a woman sees the cat",
        "explain what is more nonsensical: the dog sleeps, the cat runs",
        "yes or no",
        "where is the water",
    )


def test_rows_do_not_depend_on_each_other(tiny: Any, texts: tuple[str, ...]) -> None:
    for config in (greedy_config(tiny.model, TOKENS), ending(tiny, texts)):
        together = decode(tiny.read(texts), config)
        backwards = decode(tiny.read(texts[::-1]), config)[::-1]
        for text, one, other in zip(texts, together, backwards, strict=True):
            (alone,) = decode(tiny.read([text]), config)
            assert one.tokens == alone.tokens == other.tokens
            assert one.log_probs == pytest.approx(alone.log_probs, abs=1e-4)
            assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)


def test_some_rows_end_before_others(tiny: Any, texts: tuple[str, ...]) -> None:
    config = ending(tiny, texts)
    rows = decode(tiny.read(texts), config)
    assert len({len(row.tokens) for row in rows}) > 1
    for row in rows:
        assert not set(row.tokens) & set(config.eos_token_id)
        ended = len(row.tokens) < TOKENS
        assert len(row.log_probs) == len(row.tokens) + ended


@pytest.mark.parametrize("length", [0, 1, 3])
def test_it_is_what_transformers_generates(tiny: Any, texts: tuple[str, ...], length: int) -> None:
    config = ending(tiny, texts)
    prefix = [5, 9, 20][:length]
    rows = decode(tiny.read(texts), config, prefixes=[prefix] * len(texts))
    for text, row in zip(texts, rows, strict=True):
        assert row.tokens == tiny.generated(text, config, prefix)


def test_log_probs_are_those_of_a_plain_forward_pass(tiny: Any, texts: tuple[str, ...]) -> None:
    config = ending(tiny, texts)
    prefixes = [[4, 7], [], [30], [4, 8], [31], []]
    for given in (None, prefixes):
        rows = decode(tiny.read(texts), config, prefixes=given)
        for text, row, prefix in zip(texts, rows, given or [[]] * len(texts), strict=True):
            ended = len(row.log_probs) > len(row.tokens)
            options = [
                [*prefix, *row.tokens, *end]
                for end in ([[e] for e in config.eos_token_id] if ended else [[]])
            ]
            expected = [tiny.log_probs(text, tokens)[len(prefix) :] for tokens in options]
            # Where it ended, it was by the likelier of the two ends.
            assert row.log_probs == pytest.approx(max(expected, key=lambda values: values[-1]), abs=1e-4)


def test_an_empty_generation(tiny: Any) -> None:
    config = greedy_config(tiny.model, TOKENS)
    (row,) = decode(tiny.read(["the dog"]), config)
    config.eos_token_id = [row.tokens[0]]
    (empty,) = decode(tiny.read(["the dog"]), config)
    assert empty.tokens == []
    assert empty.log_probs == pytest.approx(row.log_probs[:1])


def test_it_stops_at_the_limit(tiny: Any) -> None:
    for limit in (1, 5):
        (row,) = decode(tiny.read(["the dog"]), greedy_config(tiny.model, limit))
        assert len(row.tokens) == len(row.log_probs) == limit


def test_a_models_other_habits_are_left_out(tiny: Any) -> None:
    own = tiny.model.generation_config
    before = greedy_config(tiny.model, TOKENS).to_dict()
    try:
        own.num_beams, own.do_sample, own.no_repeat_ngram_size, own.max_length = 4, True, 2, 7
        assert greedy_config(tiny.model, TOKENS).to_dict() == before
        (row,) = decode(tiny.read(["the dog"]), greedy_config(tiny.model, TOKENS))
    finally:
        own.num_beams, own.do_sample, own.no_repeat_ngram_size, own.max_length = 1, False, None, None
    (plain,) = decode(tiny.read(["the dog"]), greedy_config(tiny.model, TOKENS))
    assert row.tokens == plain.tokens
