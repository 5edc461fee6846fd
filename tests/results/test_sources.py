from __future__ import annotations

from typing import Any

import pytest

from caref.errors import CarefError, DataError
from caref.results.run_directory import RunDirectory
from caref.results.setting import Setting
from caref.results.sources import on_common_splits, read_settings

ONES: dict[str, list[float | None]] = {"correct": [1.0, 1.0]}


def one_setting(run: RunDirectory) -> str:
    return "s"


def shape(settings: list[Setting]) -> dict[str, dict[str, list[Any]]]:
    return {each.name: {task: list(splits) for task, splits in each.tasks.items()} for each in settings}


def test_a_folder_of_runs_is_a_setting(folders: Any) -> None:
    for name in ("first", "second"):
        for seed in (2, 1):
            for task in ("esnli", "comve"):
                folders.run(f"{name}/{task}{seed}", ONES, seed=seed, task=task)
    paths = [folders.root / "first", folders.root / "second"]
    found = read_settings(paths, one_setting)
    splits = {"comve": [1, 2], "esnli": [1, 2]}
    assert shape(found) == {"first": splits, "second": splits}
    assert found[0].tasks["comve"][2].scores == {"0": {"correct": 1.0}, "1": {"correct": 1.0}}


def test_the_settings_of_one_folder_are_called_by_what_differs(folders: Any) -> None:
    for method in ("aq", "lora"):
        for objective in ("ce", "caref"):
            folders.run(f"{method}-{objective}", ONES, method=method, objective=objective)
    assert list(shape(read_settings([folders.root], one_setting))) == [
        "aq caref", "aq ce", "lora caref", "lora ce",
    ]  # fmt: skip
    settings = read_settings([folders.root, folders.root / "aq-ce"], one_setting)
    assert settings[0].name.endswith(": aq caref")
    assert settings[-1].name == "aq-ce"


def test_settings_of_the_same_name_are_told_apart(folders: Any) -> None:
    for seed in (1, 2):
        for rate in ("low", "high"):
            folders.run(f"{rate}{seed}", ONES, seed=seed)
    found = read_settings([folders.root], lambda run: run.path.name.rstrip("12"))
    assert shape(found) == {f"tiny aq caref {rate}": {"esnli": [1, 2]} for rate in ("high", "low")}


def test_folders_of_the_same_name_are_told_apart(folders: Any) -> None:
    for parent in ("x", "y"):
        folders.run(f"{parent}/runs/1", ONES)
    found = read_settings([folders.root / parent / "runs" for parent in "xy"], one_setting)
    assert [each.name for each in found] == ["x/runs", "y/runs"]


def test_a_folder_of_evaluations_is_a_setting(folders: Any) -> None:
    for side in "ab":
        for split in ("one", "two"):
            folders.evaluation(f"{side}/{split}", ONES)
    found = read_settings([folders.root / side for side in "ab"], one_setting)
    assert shape(found) == {side: {"": ["one", "two"]} for side in "ab"}


def test_two_evaluations_are_one_split(folders: Any) -> None:
    for side in ("system", "other"):
        folders.evaluation(side, ONES)
    found = read_settings([folders.root / side for side in ("system", "other")], one_setting)
    assert shape(found) == {"system": {"": ["the only one"]}, "other": {"": ["the only one"]}}


def test_evaluations_of_one_folder_alone_are_settings(folders: Any) -> None:
    for name in ("a", "b"):
        folders.evaluation(f"systems/{name}", ONES)
    found = read_settings([folders.root / "systems"], one_setting)
    assert shape(found) == {"a": {"": ["the only one"]}, "b": {"": ["the only one"]}}


def test_folders_of_evaluations_in_one_folder_are_settings(folders: Any) -> None:
    for name in ("low", "high"):
        for split in ("one", "two"):
            folders.evaluation(f"rates/{name}/{split}", ONES)
    found = shape(read_settings([folders.root / "rates"], one_setting))
    assert found == {name: {"": ["one", "two"]} for name in ("high", "low")}


def test_evaluations_of_runs_are_settings_as_the_runs_are(folders: Any) -> None:
    for method in ("aq", "lora"):
        for seed in (1, 22):
            for task in ("comve", "esnli"):
                of_run = {"method": method, "seed": seed, "task": task, "split_checksum": str(seed)}
                folders.evaluation(f"{method}{seed}{task}", ONES, run=of_run)
    (first, second) = found = read_settings([folders.root], one_setting)
    assert shape(found) == {name: {"comve": [1, 22], "esnli": [1, 22]} for name in ("aq", "lora")}
    assert first.tasks["comve"][22].checksum == second.tasks["comve"][22].checksum == "22"
    folders.evaluation("again", ONES, run=of_run)
    with pytest.raises(CarefError, match=r"two of the lora runs have seed 22"):
        read_settings([folders.root], one_setting)


def test_what_is_no_setting(folders: Any) -> None:
    with pytest.raises(DataError, match=r"there is no folder .*nowhere"):
        read_settings([folders.root / "nowhere"], one_setting)
    with pytest.raises(DataError, match=r"holds neither a complete run nor an evaluation"):
        read_settings([folders.root], one_setting)
    (folders.root / "theirs.jsonl").touch()
    with pytest.raises(DataError, match=r"theirs.jsonl is a file; caref evaluate .* --out FOLDER makes"):
        read_settings([folders.root / "theirs.jsonl"], one_setting)
    run, evaluation = folders.run("run", ONES), folders.evaluation("evaluation", ONES)
    with pytest.raises(CarefError, match=r"runs and evaluations are not compared with each other"):
        read_settings([run.path, evaluation], one_setting)
    with pytest.raises(CarefError, match=r"the same folder is given twice"):
        read_settings([run.path, run.path], one_setting)
    folders.run("again", ONES)
    with pytest.raises(CarefError, match=r"two of the tiny aq caref runs have seed 1"):
        read_settings([folders.root], one_setting)


def test_the_splits_that_all_have(folders: Any) -> None:
    for name, seeds in (("a", (1, 2, 3)), ("b", (2, 3, 4))):
        for seed in seeds:
            folders.run(f"{name}/{seed}", ONES, seed=seed)
    folders.run("b/other", ONES, task="comve")
    found, left_out = on_common_splits(read_settings([folders.root / side for side in "ab"], one_setting))
    assert shape(found) == {side: {"esnli": [2, 3]} for side in "ab"}
    assert left_out == 3
    folders.run("c/9", ONES, seed=9)
    with pytest.raises(CarefError, match="the settings have no split of any task in common"):
        on_common_splits(read_settings([folders.root / side for side in "ac"], one_setting))
