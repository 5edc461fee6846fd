"""Models that attend to the last few tokens alone: padding must not take up their window."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caref.generation.answering import answer
from caref.generation.decoding import decode, greedy_config
from caref.generation.reading import needs_equal_lengths
from caref.generation.scoring import score_answers

TEXTS = ("the dog", "why is the sky blue? who keeps the money of a man", "a cat", "yes or no", "the cat")
CANDIDATES = ("bank", "no money in the house")
WINDOWS: dict[str, tuple[str, dict[str, Any]]] = {
    "every layer": ("tiny_mistral", {"sliding_window": 4}),
    "one of two layers": (
        "tiny_qwen2",
        {
            "use_sliding_window": True,
            "sliding_window": 4,
            "layer_types": ["full_attention", "sliding_attention"],
        },
    ),
}


@pytest.fixture(params=WINDOWS)
def windowed(request: pytest.FixtureRequest, tmp_path: Path, load_tiny: Callable[[Path], Any]) -> Any:
    name, settings = WINDOWS[request.param]
    folder = tmp_path / "model"
    shutil.copytree(request.getfixturevalue(name), folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **settings}))
    return load_tiny(folder)


@pytest.mark.parametrize("kind", [None, "prefix", "prompt"])
def test_answers_are_those_of_training_and_of_a_batch_of_one(windowed: Any, kind: str | None) -> None:
    if kind is not None:
        windowed.adapt(kind)
    assert needs_equal_lengths(windowed.model) == (kind is not None)
    questions = [windowed.encoder.question(str(n), text, CANDIDATES) for n, text in enumerate(TEXTS)]
    together = answer(windowed.model, windowed.encoder, questions, max_new_tokens=6)
    alone = answer(windowed.model, windowed.encoder, questions, max_new_tokens=6, batch_size=1)
    for text, one, other in zip(TEXTS, together, alone, strict=True):
        assert one.text == other.text
        assert one.label_log_probs_sum == pytest.approx(other.label_log_probs_sum, abs=1e-4)
        (row,) = decode(windowed.read([text]), greedy_config(windowed.model, 6))
        expected = windowed.log_probs(text, row.tokens)
        assert row.log_probs[: len(row.tokens)] == pytest.approx(expected, abs=1e-4)
        ids = [windowed.encoder.answer_ids(candidate) for candidate in CANDIDATES]
        (scores,) = score_answers(windowed.read([text]), [ids])
        for tokens, score in zip(ids, scores, strict=True):
            assert score.log_prob_sum == pytest.approx(math.fsum(windowed.log_probs(text, tokens)), abs=1e-4)


def test_it_is_what_transformers_generates(windowed: Any) -> None:
    config = greedy_config(windowed.model, 8)
    for text, row in zip(TEXTS, decode(windowed.read(TEXTS), config), strict=True):
        assert row.tokens == windowed.generated(text, config)
