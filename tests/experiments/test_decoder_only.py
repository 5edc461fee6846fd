"""Whole runs of decoder-only models, and of adapters with virtual tokens on either kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caref.errors import CarefError
from caref.experiments.assembly import make_encoder, make_objective
from caref.experiments.flat import spec_from_flat
from caref.experiments.predicting import TrainedRun
from caref.experiments.resources import Resources
from caref.experiments.run import execute
from caref.experiments.series import check_specs
from caref.experiments.spec import RunSpec
from caref.generation.decoding import decode, greedy_config
from caref.generation.reading import read
from caref.models.loading import ModelSource, load_config, load_model
from caref.results.run_directory import RunDirectory

Starter = Callable[..., RunSpec]


@pytest.fixture
def starter() -> Starter:
    """A small run of a packaged task."""

    def make(model: Path, **changes: Any) -> RunSpec:
        return spec_from_flat(
            {
                "task": "starter_nli",
                "model": str(model),
                "metrics": "accuracy,broken,answer_confidence",
                "shots": 6,
                "eval_size": 6,
                "epochs": 1,
                "learning_rate": 1e-2,
                "max_new_tokens": 6,
                **changes,
            }
        )

    return make


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        ("tiny_gpt2", {}),
        ("tiny_gpt2", {"method": "prefix"}),
        ("tiny_llama", {"prompt": "chat"}),
        ("tiny_llama", {"method": "prompt", "prompt": "chat"}),
        ("tiny_llama", {"method": "lora", "supervision": "answer_only"}),
        ("tiny_t5", {"method": "prefix"}),
        ("tiny_bert2bert", {"method": "prompt", "supervision": "answer_only"}),
    ],
)
def test_a_run_and_its_answers(
    starter: Starter, request: pytest.FixtureRequest, tmp_path: Path, model: str, changes: dict[str, Any]
) -> None:
    spec = starter(request.getfixturevalue(model), **changes)
    check_specs([spec], Resources())
    result = execute(spec, tmp_path)
    directory = RunDirectory(tmp_path / spec.directory_name)
    assert directory.is_complete
    assert (result.evaluated_examples, result.train_examples) == (6, 6)
    made = directory.read_predictions()
    trained = TrainedRun.load(directory.path)
    questions = [
        trained.encoder.question(each.id, each.input, list(each.label_probabilities or {})) for each in made
    ]
    for one, other in zip(trained.answer(questions), made, strict=True):
        assert (one.text, one.label) == (other.text, other.label)
        assert one.label_log_probs_sum == pytest.approx(other.label_log_probs_sum, abs=1e-3)


def test_the_chat_is_the_template_s(starter: Starter, tiny_llama: Path, tmp_path: Path) -> None:
    spec = starter(tiny_llama, prompt="chat", epochs=0)
    execute(spec, tmp_path)
    encoder = TrainedRun.load(tmp_path / spec.directory_name).encoder
    ids = encoder.question("1", "is the dog red?").input_ids
    assert encoder.tokenizer.decode(ids).endswith("is the dog red?<|eot|><|start|>assistant<|stop|>")


@pytest.mark.parametrize(
    ("model", "changes", "told"),
    [
        (
            "tiny_gpt2",
            {"max_input_tokens": 450},
            "the model has 512 positions, and up to 514 tokens are asked",
        ),
        (
            "tiny_gpt2",
            {"max_input_tokens": 440, "method": "prefix"},
            "the model has 512 positions, and up to 504 tokens and 20 virtual ones are asked",
        ),
        ("tiny_bert2bert", {"max_input_tokens": 513}, "the model's encoder has 512 positions, and up to 513"),
        (
            "tiny_bert2bert",
            {"max_input_tokens": 500, "method": "prompt"},
            "the model's encoder has 512 positions, and up to 500 tokens and 20 virtual ones",
        ),
        (
            "tiny_bart",
            {"max_new_tokens": 256, "supervision": "answer_only"},
            r"the model's decoder has 512 positions, and up to 513 tokens are asked .*--max-new-tokens",
        ),
    ],
)
def test_what_has_no_position_is_refused_before_anything_is_done(
    starter: Starter,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    model: str,
    changes: dict[str, Any],
    told: str,
) -> None:
    spec = starter(request.getfixturevalue(model), **changes)
    with pytest.raises(CarefError, match=told):
        check_specs([spec], Resources())
    with pytest.raises(CarefError, match=told):
        execute(spec, tmp_path)
    assert not (tmp_path / spec.directory_name / "spec.json").exists()


def test_the_loss_of_a_decoder_only_model_looks_one_token_ahead(
    starter: Starter, tiny_gpt2: Path, tiny_t5: Path
) -> None:
    for path, ahead in ((tiny_gpt2, True), (tiny_t5, False)):
        spec = starter(path)
        encoder = make_encoder(spec, Resources(), load_config(ModelSource(str(path))))
        assert make_objective(spec, encoder).shift is ahead


def test_t5_has_no_such_limit(starter: Starter, tiny_t5: Path) -> None:
    check_specs([starter(tiny_t5, max_input_tokens=5000)], Resources())


@pytest.mark.parametrize(("model", "read_tokens"), [("tiny_gpt2", 500), ("tiny_bart", 512)])
def test_what_is_not_refused_has_a_position(
    request: pytest.FixtureRequest, model: str, read_tokens: int
) -> None:
    loaded = load_model(ModelSource(str(request.getfixturevalue(model)))).eval()
    limit = 512 if loaded.config.is_encoder_decoder else 512 - read_tokens
    config = greedy_config(loaded, limit)
    config.eos_token_id = [-1]
    (row,) = decode(read(loaded, [[5] * read_tokens]), config)
    assert len(row.tokens) == limit
