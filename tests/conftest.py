"""Fixtures for every test: where the shared real data is, and tiny models made on the spot."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Literal

import pytest

from caref.tasks import TASKS, Task
from caref.tasks.example import Example
from caref.tasks.pool import Part
from caref.tasks.prompt import PromptFormat

REPOSITORY = Path(__file__).resolve().parents[1]


def _load_families() -> ModuleType:
    """`tests/families.py`, under its own name, so that any test can import it."""
    spec = importlib.util.spec_from_file_location("families", Path(__file__).with_name("families.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["families"] = module
    spec.loader.exec_module(module)
    return module


families = _load_families()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the real data sets and the two small models; skips where it is absent."""
    folder = Path(os.environ.get("CAREF_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data: {folder} is absent (set CAREF_SHARED)")
    return folder


def _written(name: str, what: str) -> Callable[..., Path]:
    """A fixture: the folder of a tiny model, written once in a session."""

    def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
        return families.WRITERS[name](tmp_path_factory.mktemp("models") / name.replace("_", "-"))

    folder.__doc__ = f"The directory of a random {what}."
    return pytest.fixture(scope="session", name=name)(folder)


_t5 = _written("tiny_t5", "T5 1.1, its output layer tied, with a tokenizer of words and letters")
_t5_untied = _written("tiny_t5_untied", "T5 1.1 with an output matrix of its own, as Flan-T5 has it")
_bert2bert = _written("tiny_bert2bert", "BERT-to-BERT pair with a WordPiece tokenizer of the same words")
_bart = _written("tiny_bart", "BART, `<s> ... </s>` around its texts")
_gpt2 = _written("tiny_gpt2", "GPT-2: no token pads a text or begins it")
_llama = _written("tiny_llama", "LLaMA 3: a token begins every text; a chat template")
_qwen2 = _written("tiny_qwen2", "Qwen2: no token begins a text; a chat template")
_qwen3 = _written("tiny_qwen3", "Qwen3: norms of q and k, wide heads; else as Qwen2")
_mistral = _written("tiny_mistral", "Mistral with a tokenizer as SentencePiece's")
_phi3 = _written("tiny_phi3", "Phi-3: q, k and v in one matrix, one after the other")
_gpt_neox = _written("tiny_gpt_neox", "GPT-NeoX: q, k and v in one matrix, head by head")


@pytest.fixture(scope="session", params=families.ENCODER_DECODERS)
def tiny_model(request: pytest.FixtureRequest) -> Path:
    """Each tiny encoder-decoder in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session", params=families.DECODERS)
def tiny_decoder(request: pytest.FixtureRequest) -> Path:
    """Each tiny decoder-only model in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session", params=families.ALL)
def tiny_any(request: pytest.FixtureRequest) -> Path:
    """Each tiny model in turn, encoder-decoder or decoder-only."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def parity(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Registers `make_parity` as a task; collects the parts that are generated, with their size."""
    generated: list[tuple[str, int]] = []

    def make_parity(
        *, size: int = 40, asked: Literal["even", "odd"] = "even", noise: float | None = None
    ) -> Task:
        """Is a number even, or odd?

        Args:
            size: How many numbers are in each part.
            asked: What is asked of each.
            noise: Not used. None means none.
        """
        if size < 2:
            raise ValueError(f"size must be at least 2, got {size}")

        def generate(part: Part) -> Iterator[Example]:
            generated.append((part, size))
            first = 0 if part == "train" else size
            for number in range(first, first + size):
                answer = "yes" if (number % 2 == 0) == (asked == "even") else "no"
                fields = {"number": str(number), "asked": asked}
                yield Example(str(number), fields, ("no", "yes"), answer, (f"it is {number}",))

        return Task(
            name="parity",
            labels=("no", "yes"),
            prompts={"feb": PromptFormat(name="feb", input="is {number} {asked}?")},
            source="https://example.org",
            licence="CC0",
            parts=("train", "validation"),
            generate=generate,
        )

    assert "parity" not in TASKS
    monkeypatch.setitem(TASKS._objects, "parity", make_parity)
    return generated
