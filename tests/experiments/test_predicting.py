from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from caref.errors import CarefError, DataError
from caref.experiments.predicting import TrainedRun, fitted_temperature
from caref.experiments.run import execute
from caref.experiments.spec import RunSpec
from caref.results.run_directory import RunDirectory

MakeSpec = Callable[..., RunSpec]


@pytest.fixture(scope="module")
def trained(done: RunDirectory) -> TrainedRun:
    return TrainedRun.load(done.path)


def test_it_answers_as_the_run_did(done: RunDirectory, trained: TrainedRun) -> None:
    expected = done.read_predictions()
    questions = trained.read_questions(done.predictions_path)
    answers = trained.answer(questions)
    assert [(each.id, each.input, each.text) for each in answers] == [
        (each.id, each.input, each.text) for each in expected
    ]
    for one, other in zip(answers, expected, strict=True):
        assert one.confidence == pytest.approx(other.confidence, abs=1e-6)
        assert one.label_probabilities == pytest.approx(other.label_probabilities, abs=1e-6)


def test_both_forms_of_a_question(trained: TrainedRun, tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(
        '{"input": "explain is the sky red? \u2028 no \\\\n (A) no (B) yes", "id": 7}\n'
        "\n"
        '{"thing": "the sky", "story": "look"}\n'
        '{"input": "red?", "choices": ["red", "blue", "I do not know"]}\n'
    )
    questions = trained.read_questions(file)
    assert [each.id for each in questions] == ["7", "3", "4"]
    assert [each.candidates for each in questions] == [
        ("no", "yes"), ("no", "yes"), ("red", "blue", "I do not know"),
    ]  # fmt: skip
    assert questions[1].input == "explain is the sky red? look"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", ":2: not JSON"),
        ("[1]", ":2: expected an object with an input or the task's fields, got [1]"),
        ('{"input": 3}', ":2: input must be a text, got 3"),
        ('{"thing": null, "story": "s"}', ":2: thing must be a text, got None"),
        ('{"thing": "sky"}', ":2: prompt 'feb': unknown field 'story'"),
        ('{"input": "a", "choices": "yes"}', ":2: choices must be a list of texts, got 'yes'"),
        ('{"input": "a", "choices": [1]}', ":2: choices must be a list of texts, got [1]"),
        (json.dumps({"input": "a " * 400}), ":2: the input '2' has"),
    ],
)
def test_a_question_that_cannot_be_asked(trained: TrainedRun, tmp_path: Path, line: str, told: str) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"input": "fine"}\n' + line + "\n")
    with pytest.raises(DataError) as caught:
        trained.read_questions(file)
    assert f"{file}{told}" in str(caught.value)


def test_a_file_that_cannot_be_read(trained: TrainedRun, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*nowhere\.jsonl: No such file"):
        trained.read_questions(tmp_path / "nowhere.jsonl")
    (tmp_path / "latin.jsonl").write_bytes('{"input": "é"}'.encode("latin-1"))
    with pytest.raises(DataError, match=r"latin\.jsonl: not UTF-8"):
        trained.read_questions(tmp_path / "latin.jsonl")


def with_temperature(done: RunDirectory, path: Path, temperature: float | None) -> Path:
    """A copy of the run whose evaluation fitted this temperature; None where it could not."""
    shutil.copytree(done.path, path)
    result = json.loads((path / "result.json").read_text())
    notes = {"temperature": "too few"} if temperature is None else {}
    result["metrics"]["temperature"] = {"values": {"temperature": temperature}, "notes": notes}
    (path / "result.json").write_text(json.dumps(result))
    return path


def test_the_runs_temperature_scales_the_candidates(
    done: RunDirectory, trained: TrainedRun, tmp_path: Path
) -> None:
    assert trained.temperature is None
    scaled = TrainedRun.load(with_temperature(done, tmp_path / "run", 2.5))
    assert scaled.temperature == 2.5
    questions = scaled.read_questions(done.predictions_path)
    plain, warm = trained.answer(questions), scaled.answer(questions)
    for before, after in zip(plain, warm, strict=True):
        assert after.temperature == 2.5
        assert after.label_log_probs_sum == before.label_log_probs_sum
        sums = list((after.label_log_probs_sum or {}).values())
        weights = [math.exp((value - max(sums)) / 2.5) for value in sums]
        expected = [weight / sum(weights) for weight in weights]
        assert list((after.label_probabilities or {}).values()) == pytest.approx(expected)
    assert scaled.answer(questions, temperature=1.0) == plain
    assert [each.temperature for each in trained.answer(questions[:1], temperature=4.0)] == [4.0]


@pytest.mark.parametrize("temperature", [None, 0.01, 100.0])
def test_a_temperature_that_is_undefined_or_on_a_bound_is_not_used(
    done: RunDirectory, tmp_path: Path, temperature: float | None
) -> None:
    run = RunDirectory(with_temperature(done, tmp_path / "run", temperature))
    assert fitted_temperature(run.read_result()) is None


def test_no_complete_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no complete run: result\.json is missing"):
        TrainedRun.load(tmp_path)


def test_no_weights(done: RunDirectory, tmp_path: Path) -> None:
    shutil.copytree(done.path, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "adapter")
    with pytest.raises(CarefError, match="holds no trained weights: it was run with --no-save-adapter"):
        TrainedRun.load(tmp_path / "run")


def test_everything_has_moved(make_spec: MakeSpec, own_data: Path, tiny_t5: Path, tmp_path: Path) -> None:
    """The run keeps the user's YAML files itself; only the base model's place has to be told."""
    shutil.copytree(own_data, tmp_path / "data")
    shutil.copytree(tiny_t5, tmp_path / "model")
    spec = make_spec(
        task=str(tmp_path / "data" / "red.yaml"),
        prompt=str(tmp_path / "data" / "short.yaml"),
        model=str(tmp_path / "model"),
        metrics=(),
        encoder=None,
    )
    execute(spec, tmp_path / "runs")
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "model").rename(tmp_path / "elsewhere")
    run = tmp_path / "runs" / spec.directory_name
    with pytest.raises(CarefError, match=r"no model at .*model: the path does not exist"):
        TrainedRun.load(run)
    trained = TrainedRun.load(run, base_model=str(tmp_path / "elsewhere"))
    assert trained.labels == ("no", "yes")
    assert trained.encoder.prompt_format.input == "is {thing} red?"


def test_foreign_code_needs_a_flag_of_its_own(done: RunDirectory, tmp_path: Path) -> None:
    """A run directory may come from somebody else: what it says of itself opens nothing."""
    shutil.copytree(done.path, tmp_path / "run")
    spec_path = tmp_path / "run" / "spec.json"
    spec_path.write_text(
        spec_path.read_text().replace('"trust_remote_code": false', '"trust_remote_code": true')
    )
    with pytest.raises(CarefError, match="--trust-remote-code lets that code run again"):
        TrainedRun.load(tmp_path / "run")
    assert TrainedRun.load(tmp_path / "run", trust_remote_code=True).spec.trust_remote_code
    assert not TrainedRun.load(done.path).spec.trust_remote_code


def test_a_pickle_is_not_loaded(done: RunDirectory, tmp_path: Path) -> None:
    shutil.copytree(done.path, tmp_path / "run")
    adapter = tmp_path / "run" / "adapter"
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    with pytest.raises(CarefError, match="holds no trained weights"):
        TrainedRun.load(tmp_path / "run")
