from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from caref.errors import CarefError, DataError
from caref.experiments import flat
from caref.experiments.flat import NESTED, flat_settings, spec_from_flat
from caref.experiments.spec import RunSpec, read_run_spec, resolve_spec
from caref.losses import OBJECTIVES
from caref.methods import METHODS
from caref.metrics import METRICS
from caref.results.run_directory import RunDirectory
from caref.settings import Setting, declared_settings
from caref.tasks import TASKS
from caref.training.settings import TrainingSettings

SMALL = {"task": "esnli", "data": "data", "model": "google/flan-t5-large"}


def test_the_canonical_form_is_pinned() -> None:
    """Whoever has finished runs finds them by this hash.

    Update it only together with a changelog line that says that runs are done anew: when a setting was
    added, renamed or given another default, or a registry entry of this spec got a setting. Never for a
    change of `canonical_json` alone.
    """
    spec = resolve_spec(**SMALL)
    assert spec.run_id == "e41d4c48843762ea"
    assert spec.directory_name == f"esnli_flan-t5-large_aq_caref_seed7004_{spec.run_id}"
    parsed = json.loads(spec.canonical_json())
    assert list(parsed) == sorted(RunSpec.model_fields)
    assert parsed["objective_settings"]["alpha"] == 2.0
    assert " " not in spec.canonical_json()


def test_the_id_does_not_depend_on_the_order_of_the_settings() -> None:
    given = {**SMALL, "alpha": 1.5, "epochs": 3, "rank": 8, "method": "lora"}
    assert spec_from_flat(given).run_id == spec_from_flat(dict(reversed(given.items()))).run_id


def test_a_default_that_is_given_changes_nothing() -> None:
    spec = spec_from_flat(SMALL)
    explicit = {
        **SMALL,
        "alpha": 2,
        "epochs": 50,
        "method": "aq",
        "layer": None,
        "metrics": list(spec.metrics),
    }
    assert spec_from_flat(explicit) == spec
    assert spec_from_flat(explicit).run_id == spec.run_id
    assert RunSpec.model_validate_json(spec.canonical_json()) == spec


def test_every_setting_counts_towards_the_id() -> None:
    ids = {spec_from_flat(SMALL).run_id}
    changes: dict[str, Any] = {
        "task": "ecqa", "data": "other", "data_format": "ukplab", "skip_bad_rows": True, "model": "m",
        "trust_remote_code": True, "method": "laq", "objective": "ce", "supervision": "answer_only",
        "prompt": "chat", "seed": 1, "shots": 3, "eval_size": 3, "max_new_tokens": 3, "confidence": False,
        "metrics": ("accuracy",), "epochs": 2, "alpha": 3.0, "span": "answer", "encoder": "e", "layer": 3,
        "target_modules": "x",
    }  # fmt: skip
    for name, value in changes.items():
        ids.add(spec_from_flat({**SMALL, name: value}).run_id)
    assert len(ids) == len(changes) + 1


def test_the_setting_id_is_that_of_all_seeds() -> None:
    one, other = (spec_from_flat({**SMALL, "seed": seed}) for seed in (1, 2))
    assert one.setting_id == other.setting_id
    assert one.run_id != other.run_id
    assert one.setting_id != spec_from_flat({**SMALL, "seed": 1, "alpha": 3}).setting_id


def test_yaml_flags_and_python_agree() -> None:
    """As a file is read, as a flag arrives, and as a program would say it."""
    text = "{task: esnli, data: data, model: m, lambda_kl: 1e-2, epochs: 3, metrics: 'accuracy, nbert'}"
    from_yaml = spec_from_flat(yaml.safe_load(text))
    flags = {"lambda_kl": 0.01, "epochs": 3.0, "metrics": ("accuracy", "nbert")}
    from_flags = spec_from_flat({"task": "esnli", "data": "data", "model": "m", **flags})
    from_python = resolve_spec(
        task="esnli",
        data="data",
        model="m",
        objective_settings={"lambda_kl": 0.01},
        training={"epochs": 3},
        metrics=("accuracy", "nbert"),
    )
    assert from_yaml == from_flags == from_python
    assert from_yaml.run_id == from_flags.run_id == from_python.run_id


def test_your_own_files_content_is_a_part_of_the_id(tmp_path: Path, own_data: Path) -> None:
    shutil.copytree(own_data, tmp_path, dirs_exist_ok=True)
    task, prompt = tmp_path / "red.yaml", tmp_path / "short.yaml"
    data = [tmp_path / name for name in ("red_train.jsonl", "red_dev.jsonl")]
    given = {"task": str(task), "prompt": str(prompt), "model": "m"}
    first = spec_from_flat(given)
    assert set(first.file_hashes) == {str(file) for file in (task, prompt, *data)}
    assert spec_from_flat(given).run_id == first.run_id
    for file in (task, prompt, *data):
        file.write_text(file.read_text() + ("\n" if file in data else "# changed\n"))
        changed = spec_from_flat(given)
        assert changed.run_id != first.run_id
        first = changed


# --- settings of a task -----------------------------------------------------------------------------


def test_a_tasks_settings_are_a_part_of_the_spec(parity: list[tuple[str, int]]) -> None:
    plain = resolve_spec(task="parity", model="m")
    assert plain.task_settings == {"size": 40, "asked": "even", "noise": None}
    changed = spec_from_flat(yaml.safe_load("{task: parity, model: m, size: 6, noise: 1e-2}"))
    assert changed.task_settings == {"size": 6, "asked": "even", "noise": 0.01}
    assert changed == resolve_spec(task="parity", model="m", task_settings={"size": 6, "noise": 0.01})
    assert changed.run_id != plain.run_id
    assert changed.setting_id != plain.setting_id
    assert changed.with_seed(1).task_settings == changed.task_settings
    assert spec_from_flat({"task": "parity", "model": "m", "size": 40}).run_id == plain.run_id
    assert parity == []
    table = flat_settings()
    assert (table["size"].section, table["size"].entries) == ("task_settings", ("parity",))
    assert set(flat_settings({"task_settings"})) >= {"size", "asked", "noise"}
    assert {each.section for each in flat_settings({"task_settings"}).values()} == {"task_settings"}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"siez": 6}, "unknown setting 'siez'; did you mean 'size'? See: caref run --help"),
        ({"size": 1}, "size must be at least 2, got 1"),
        ({"size": "six"}, "size of the task 'parity' must be of type int, got 'six'"),
        ({"task": "esnli", "size": 6}, "'size' is not a setting of the task 'esnli'; it has: none"),
        ({"task": "partiy"}, "unknown task 'partiy'; did you mean 'parity'? See: caref list tasks"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_a_mistake_in_a_tasks_settings_is_one_line(
    parity: list[tuple[str, int]], wrong: dict[str, Any], told: str
) -> None:
    with pytest.raises(CarefError) as caught:
        spec_from_flat({"task": "parity", "model": "m", **wrong})
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert parity == []


def test_a_spec_with_and_without_a_tasks_settings_is_read(
    tmp_path: Path, parity: list[tuple[str, int]]
) -> None:
    directory = RunDirectory(tmp_path)
    spec = spec_from_flat({"task": "parity", "model": "m", "size": 6})
    directory.start(spec.model_dump(mode="json"))
    assert read_run_spec(directory) == spec
    assert read_run_spec(directory).run_id == spec.run_id
    directory.start(spec.model_dump(mode="json", exclude={"task_settings"}))
    assert read_run_spec(directory).task_settings == {}


# --- every setting has a flag -----------------------------------------------------------------------


def nested_models() -> list[tuple[str, type[BaseModel]]]:
    return [("", RunSpec), ("training", TrainingSettings)]


def test_every_field_is_a_setting_with_a_description() -> None:
    table = flat_settings()
    for section, model in nested_models():
        for name in set(model.model_fields) - NESTED:
            assert table[name].section == section
    for section, registry in (
        ("task_settings", TASKS),
        ("method_settings", METHODS),
        ("objective_settings", OBJECTIVES),
        ("metric_settings", METRICS),
    ):
        for entry_name, entry in registry.items():
            for name in declared_settings(entry):
                assert table[name].section == section
                assert entry_name in table[name].entries
    assert [name for name, each in table.items() if not each.setting.description] == []
    assert all(each.setting.type in (bool, int, float, str, tuple) for each in table.values())


def test_a_name_that_means_two_things_is_refused() -> None:
    table = {"rank": flat.FlatSetting(Setting("rank", int, (), 4, "of LoRA"), "method_settings", ("lora",))}
    other = flat.FlatSetting(Setting("rank", int, (), 1, "of a metric"), "metric_settings", ("x",))
    with pytest.raises(ValueError, match="'rank' is declared twice: in method_settings and metric_settings"):
        flat._put(table, other)


# --- mistakes, each one line ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"alhpa": 2}, "unknown setting 'alhpa'; did you mean 'alpha'? See: caref run --help"),
        ({"zzzzzz": 2}, "unknown setting 'zzzzzz'; see: caref run --help"),
        ({"alpha": 2, "objective": "ce"}, "'alpha' is not a setting of the objective 'ce'; it has: span"),
        ({"rank": 2}, "'rank' is not a setting of the method 'aq'; it has: target_modules"),
        ({"layer": 2, "metrics": ["accuracy"]}, "'layer' is a setting of none of the metrics accuracy"),
        ({"alpha": 0.5}, "alpha must be a finite number of at least 1, got 0.5"),
        ({"alpha": "two"}, "alpha of the objective 'caref' must be of type float, got 'two'"),
        ({"alpha": True}, "alpha of the objective 'caref' must be of type float, got True"),
        ({"span": "tail"}, "span of the objective 'caref' must be one of all, answer, explanation"),
        ({"method": "lora", "rank": 0}, "rank"),
        ({"method": "lora", "rank": 1.5}, "rank of the method 'lora' must be of type int, got 1.5"),
        ({"task": "esnil", "shots": "many"}, "shots: Input should be a valid integer"),
        ({"method": "lroa"}, "unknown method 'lroa'; did you mean 'lora'? See: caref list methods"),
        ({"objective": "carf"}, "unknown objective 'carf'; did you mean 'caref'?"),
        ({"metrics": ["nbrt"]}, "unknown metric 'nbrt'; did you mean 'nbert'?"),
        ({"preset": "papper"}, "unknown preset 'papper'; there are: fewshot, paper, feb"),
        ({"supervision": "both"}, "supervision must be one of 'answer_and_explanation' or 'answer_only'"),
        ({"precision": "fp8"}, "precision must be one of 'fp32', 'bf16' or 'fp16', got 'fp8'"),
        ({"epochs": -1}, "epochs: Input should be greater than or equal to 0, got -1"),
        ({"learning_rate": "nan"}, "learning_rate: Input should be greater than 0"),
        ({"seed": -1}, "seed: Input should be greater than or equal to 0, got -1"),
        ({"seed": 2**32}, "seed: Input should be less than 4294967296"),
        ({"reduction": "none"}, "reduction none gives a loss per token; training needs mean or sum"),
        ({"supervision": "answer_only", "span": "answer"}, "span needs the separator in the targets"),
        ({"model": None}, "model is missing; see: caref run --help"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_a_mistake_is_one_line(wrong: dict[str, Any], told: str) -> None:
    given = {name: value for name, value in {**SMALL, **wrong}.items() if value is not None}
    with pytest.raises(CarefError) as caught:
        spec_from_flat(given)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_field_in_python() -> None:
    with pytest.raises(CarefError, match="unknown setting 'optimizer'; see: caref run --help"):
        resolve_spec(**SMALL, optimizer="adam")
    with pytest.raises(CarefError, match="unknown setting 'momentum'"):
        resolve_spec(**SMALL, training={"momentum": 0.9})


def test_a_spec_of_another_version_is_one_line(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    spec = resolve_spec(**SMALL).model_dump(mode="json")
    directory.start(spec)
    assert read_run_spec(directory).run_id == resolve_spec(**SMALL).run_id
    directory.start({**spec, "optimizer": "adam"})
    with pytest.raises(DataError, match=r"spec\.json does not fit this version of caref: unknown setting"):
        read_run_spec(directory)


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        resolve_spec(**SMALL).seed = 3  # type: ignore[misc]
