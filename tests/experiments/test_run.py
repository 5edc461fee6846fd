from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caref.errors import CarefError, DataError
from caref.experiments.resources import Resources
from caref.experiments.run import RunOptions, execute
from caref.experiments.series import check_specs, missing_runs, run_series
from caref.experiments.spec import DEFAULT_METRICS, RunSpec
from caref.results import run_directory
from caref.results.run_directory import RunDirectory
from caref.training.reporters import check_reporters

MakeSpec = Callable[..., RunSpec]


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and time of change."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
    }


def run(spec: RunSpec, root: Path, **options: Any) -> RunDirectory:
    execute(spec, root, options=RunOptions(**options))
    return RunDirectory(root / spec.directory_name)


def test_a_run_leaves_what_the_module_documents(done: RunDirectory, make_spec: MakeSpec) -> None:
    there = {path.name for path in done.path.iterdir()}
    assert there == {
        ".lock", "spec.json", "task.yaml", "predictions.jsonl", "scores.jsonl", "history.jsonl",
        "environment.json", "adapter", "result.json",
    }  # fmt: skip
    documented = run_directory.__doc__ or ""
    assert [name for name in there if f"``{name}" not in documented] == []

    spec, result = make_spec(), done.read_result()
    assert done.path.name == spec.directory_name
    assert RunSpec.model_validate(done.read_spec()) == spec
    assert (result.run_id, result.task, result.model) == (spec.run_id, "red", "tiny-t5")
    assert (result.train_examples, result.evaluated_examples) == (8, 6)
    assert (result.inputs_cut, result.targets_cut, result.problems_skipped) == (0, 0, 0)
    assert 0 < result.trainable_parameters < result.total_parameters
    assert tuple(result.metrics) == DEFAULT_METRICS
    assert result.metrics["nbert"].fingerprint["encoder"] == "tiny-roberta"
    assert {path.name for path in done.adapter_path.iterdir()} >= {
        "adapter_config.json",
        "adapter_model.safetensors",
    }


def test_predictions_history_and_scores(done: RunDirectory) -> None:
    predictions = done.read_predictions()
    assert [each.gold_label for each in predictions].count("yes") == 3
    assert all(set(each.label_probabilities or {}) == {"no", "yes"} for each in predictions)
    scores = [json.loads(line) for line in (done.path / "scores.jsonl").read_text().splitlines()]
    assert [each["id"] for each in scores] == [each.id for each in predictions]
    assert {"nbert", "answer_confidence"} <= set(scores[0])
    history = [json.loads(line) for line in (done.path / "history.jsonl").read_text().splitlines()]
    assert [entry["epoch"] for entry in history if "loss" in entry] == [1.0, 2.0]
    assert all("kl" in " ".join(entry) for entry in history if "loss" in entry)


@pytest.mark.parametrize(
    ("objective", "fused", "computed_by"),
    [
        ("caref", "auto", "chunked, from hidden states"),
        ("caref", "off", "eager"),
        ("focal", "auto", "eager"),
    ],
)
def test_the_environment_says_what_computed_the_objective(
    make_spec: MakeSpec, tmp_path: Path, objective: str, fused: str, computed_by: str
) -> None:
    done = run(make_spec(objective=objective), tmp_path, fused=fused)
    assert json.loads((done.path / "environment.json").read_text())["objective_computed_by"] == computed_by


def test_a_kernel_that_cannot_run_is_refused_before_anything_is_written(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr("torch.accelerator.current_accelerator", lambda: None)
    with pytest.raises(CarefError, match="the Triton kernel cannot run here"):
        run(make_spec(), tmp_path, fused="triton")
    assert list(tmp_path.iterdir()) == []


def test_the_environment_says_what_it_took(done: RunDirectory) -> None:
    environment = json.loads((done.path / "environment.json").read_text())
    stages = ["load", "training", "decoding", "scoring"]
    assert list(environment["seconds"]) == stages
    assert list(environment["peak_mib"]) == stages
    assert all(value > 0 for value in environment["seconds"].values())
    assert all(value > 50 for value in environment["peak_mib"].values())
    assert {"caref", "commit", "python", "platform", "packages", "device", "threads"} <= set(environment)
    assert environment["packages"]["torch"]


def test_again_in_a_fresh_folder_gives_the_same_bytes(
    done: RunDirectory, make_spec: MakeSpec, tmp_path: Path
) -> None:
    again = run(make_spec(), tmp_path, eval_batch_size=64)
    for name in ("predictions.jsonl", "scores.jsonl", "spec.json", "result.json"):
        assert (again.path / name).read_bytes() == (done.path / name).read_bytes(), name


def test_a_complete_run_is_left_alone(done: RunDirectory, make_spec: MakeSpec) -> None:
    before = state(done.path.parent)
    result = execute(make_spec(), done.path.parent)
    assert result == done.read_result()
    assert state(done.path.parent) == before


def test_what_ran_before_changes_nothing(make_spec: MakeSpec, tmp_path: Path) -> None:
    """A LoRA's first weights are random: the second run of a series must draw them as a first would."""
    first, second = (
        make_spec(method="lora", seed=seed, metrics=("accuracy",), encoder=None) for seed in (1, 2)
    )
    run_series([first, second], tmp_path / "series")
    alone = run(second, tmp_path / "alone")
    name = Path(second.directory_name) / "predictions.jsonl"
    assert (tmp_path / "series" / name).read_bytes() == (alone.path / "predictions.jsonl").read_bytes()


def test_0_epochs_evaluate_the_model_as_it_is(
    done: RunDirectory, make_spec: MakeSpec, tmp_path: Path
) -> None:
    """Whatever the loss; the method's count of weights is told all the same."""
    ce, caref = (run(make_spec(epochs=0, objective=name), tmp_path) for name in ("ce", "caref"))
    assert ce.predictions_path.read_bytes() == caref.predictions_path.read_bytes()
    assert ce.predictions_path.read_bytes() != done.predictions_path.read_bytes()
    assert (ce.path / "history.jsonl").read_text() == ""
    assert ce.read_result().trainable_parameters == done.read_result().trainable_parameters
    assert ce.read_result().split_checksum == done.read_result().split_checksum


def test_answer_only(make_spec: MakeSpec, tmp_path: Path) -> None:
    done = run(make_spec(supervision="answer_only", metrics=("accuracy",), encoder=None), tmp_path)
    assert done.read_result().supervision == "answer_only"
    assert all("because" in each.text for each in done.read_predictions())


def test_base_saves_the_whole_model(make_spec: MakeSpec, tmp_path: Path) -> None:
    done = run(make_spec(method="base", objective="ce", metrics=("accuracy",), encoder=None), tmp_path)
    assert (done.model_path / "model.safetensors").is_file()
    assert not done.adapter_path.exists()
    assert done.read_result().trainable_parameters == done.read_result().total_parameters


def test_weights_that_are_not_wanted(make_spec: MakeSpec, tmp_path: Path) -> None:
    done = run(make_spec(metrics=(), encoder=None, confidence=False), tmp_path, save_adapter=False)
    assert not done.adapter_path.exists() and not done.model_path.exists()
    assert done.read_result().metrics == {}
    assert done.read_predictions()[0].label_probabilities is None


def test_own_prompt_penalties_on_the_answer_and_cut_texts(
    make_spec: MakeSpec, own_data: Path, tmp_path: Path
) -> None:
    spec = make_spec(
        prompt=str(own_data / "short.yaml"),
        span="answer",
        max_target_tokens=9,
        metrics=("broken",),
        encoder=None,
    )
    done = run(spec, tmp_path)
    result = done.read_result()
    assert result.prompt == "short"
    assert result.targets_cut == 8
    assert done.read_predictions()[0].input.startswith("is the ")
    assert set(done.own_files()) == {"task", "prompt"}
    spec = make_spec(max_input_tokens=16, metrics=("broken",), encoder=None)
    assert run(spec, tmp_path).read_result().inputs_cut == 14


def test_bert_to_bert(make_spec: MakeSpec, tiny_bert2bert: Path, tmp_path: Path) -> None:
    done = run(
        make_spec(model=str(tiny_bert2bert), method="lora", metrics=("accuracy",), encoder=None), tmp_path
    )
    assert done.read_result().model == "tiny-bert2bert"


def test_reports_stay_inside_the_run(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TENSORBOARD_LOGGING_DIR", raising=False)
    done = run(make_spec(metrics=(), encoder=None), Path("runs"), report_to=("tensorboard",))
    assert list(done.logs_path.rglob("events.out.tfevents*"))
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert "TENSORBOARD_LOGGING_DIR" not in os.environ


def test_a_misspelt_reporter() -> None:
    check_reporters(())
    with pytest.raises(CarefError, match=r"unknown reporter 'tensorbord'; there are: .*tensorboard"):
        check_reporters(("tensorbord",))


# --- what is wrong is found before anything is written ----------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"prompt": "chat"}, "no chat template; use --prompt instruction"),
        ({"prompt": "fbe"}, "has no prompt 'fbe'; it has: feb, instruction, chat"),
        ({"prompt": "nowhere.yaml"}, "cannot read nowhere.yaml: No such file"),
        ({"data_format": "x"}, "has no data format 'x'; there are: files"),
        ({"shots": 100}, "train: 50 examples with label 'no' are to be drawn, 8 are there"),
        (
            {"max_input_tokens": 8, "prompt": "instruction"},
            "no context left to cut; raise --max-input-tokens",
        ),
        ({"target_modules": "no.such"}, "'no.such' matches no module of this t5 model"),
        ({"model": "./nowhere"}, "no model at ./nowhere: the path does not exist"),
        ({"encoder": "./nowhere"}, "encoder './nowhere' is not a directory"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_mistakes_are_found_first(
    make_spec: MakeSpec, tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    spec = make_spec(**change)
    with pytest.raises(CarefError) as caught:
        check_specs([spec], Resources())
    assert told in str(caught.value)
    if "encoder" in change:  # known by loading it, which a run does when it scores
        return
    with pytest.raises(CarefError):
        execute(spec, tmp_path / "runs")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_model_without_weights_writes_nothing(make_spec: MakeSpec, tiny_t5: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (bare / name).write_bytes((tiny_t5 / name).read_bytes())
    with pytest.raises(CarefError, match="bare"):
        execute(make_spec(model=str(bare)), tmp_path / "runs")
    assert not list((tmp_path / "runs").iterdir())


def test_missing_runs(done: RunDirectory, make_spec: MakeSpec) -> None:
    other = make_spec(seed=5)
    assert missing_runs([make_spec(), other], done.path.parent) == [other]


def test_a_complete_run_whose_result_is_damaged_is_not_redone_in_silence(
    make_spec: MakeSpec, tmp_path: Path
) -> None:
    spec = make_spec()
    directory = RunDirectory(tmp_path / spec.directory_name)
    directory.start({})
    directory.result_path.write_text("{")
    with pytest.raises(DataError, match="not a run result"):
        execute(spec, tmp_path)
