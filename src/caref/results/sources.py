"""Settings as folders hold them: runs, grouped as a table groups them, or evaluations."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from caref.errors import CarefError, DataError
from caref.results.evaluation import EvaluationFolder
from caref.results.paired import splits_of
from caref.results.run_directory import RunDirectory, complete_runs
from caref.results.setting import ScoredSplit, Setting, Splits
from caref.results.table import GROUP

OF_A_RUN = re.compile(r"(?P<setting>.+)_seed(?P<seed>\d+)_[0-9a-f]{16}")
"""The name of a run's folder, which its evaluation keeps."""

ONE_SPLIT = "the only one"


def read_settings(paths: Sequence[Path], setting_of: Callable[[RunDirectory], str]) -> list[Setting]:
    """Read what is to be compared.

    Args:
        paths: Runs or folders of runs: those that differ in task and seed alone are a setting. Or
            evaluations, as ``caref evaluate --out`` writes them, or folders of them: a folder is a setting,
            and each evaluation in it a split, known by its run's seed or by its own name; a single one is one
            split. Of one folder alone, each folder in it is a setting: of one split, or of those inside.
        setting_of: What tells runs of one task, model, method and objective apart, the same for all seeds.

    Returns:
        In the order of the paths, with names of their own: the folder's, or what differs between the settings
        of a folder.

    Raises:
        DataError: If a path holds neither, or something in it cannot be read.
        CarefError: If paths hold different kinds, or two runs are of the same split.
    """
    for path in paths:
        if not path.is_dir():
            raise DataError(f"there is no folder {path}")
    found = [_settings_at(path, setting_of, alone=len(paths) == 1) for path in paths]
    if len({kind for kind, _ in found}) > 1:
        kinds = ", ".join(f"{path}: {kind}" for path, (kind, _) in zip(paths, found, strict=True))
        raise CarefError(
            f"runs and evaluations are not compared with each other ({kinds}); evaluate the runs"
        )
    settings = []
    for folder, (_, inside) in zip(_folder_names(paths), found, strict=True):
        for setting in inside:
            if len(inside) == 1:
                name = folder
            else:
                name = setting.name if len(paths) == 1 else f"{folder}: {setting.name}"
            settings.append(replace(setting, name=name))
    return settings


def _settings_at(
    path: Path, setting_of: Callable[[RunDirectory], str], *, alone: bool
) -> tuple[str, list[Setting]]:
    if runs := list(complete_runs(path)):
        return "runs", _of_runs(runs, setting_of)
    if folders := [EvaluationFolder(file.parent) for file in sorted(path.rglob("evaluation.json"))]:
        return "evaluations", _of_evaluations(path, folders, alone=alone)
    raise DataError(
        f"{path} holds neither a complete run nor an evaluation; "
        "caref run --out and caref evaluate --out make them"
    )


def _of_runs(runs: Sequence[RunDirectory], setting_of: Callable[[RunDirectory], str]) -> list[Setting]:
    # What a setting is called, to its tasks, to the hash that tells two of that name apart, to its runs.
    groups: dict[tuple[str, ...], dict[str, dict[str, list[RunDirectory]]]] = {}
    for run in runs:
        result = run.read_result()
        task, *rest = (getattr(result, name) for name in GROUP[:-1])
        by_task = groups.setdefault(tuple(rest), {})
        by_task.setdefault(task, defaultdict(list))[setting_of(run)].append(run)
    told = [place for place in range(len(GROUP) - 2) if len({group[place] for group in groups}) > 1]
    settings = []
    for group, by_task in sorted(groups.items()):
        name = " ".join(group[place] for place in told) or " ".join(group[:3])
        if all(len(ids) == 1 for ids in by_task.values()):
            settings.append(
                _setting(name, {task: runs for task, ids in by_task.items() for runs in ids.values()})
            )
            continue
        for each in sorted({each for ids in by_task.values() for each in ids}):
            own = {task: ids[each] for task, ids in by_task.items() if each in ids}
            settings.append(_setting(f"{name} {each}", own))
    return settings


def _setting(name: str, tasks: Mapping[str, Sequence[RunDirectory]]) -> Setting:
    return Setting(name, {task: splits_of(runs, name) for task, runs in sorted(tasks.items())})


def _of_evaluations(root: Path, folders: Sequence[EvaluationFolder], *, alone: bool) -> list[Setting]:
    groups: dict[str, dict[Any, ScoredSplit]] = defaultdict(dict)
    for folder in folders:
        evaluation = folder.read()
        inside = folder.path.relative_to(root)
        group, key = _setting_and_split(evaluation.name, inside, alone=alone, single=len(folders) == 1)
        if key in groups[group]:
            raise CarefError(
                f"{groups[group][key].path} and {folder.path} are the same split of one setting; "
                "keep the evaluations of each setting in a folder of their own"
            )
        groups[group][key] = ScoredSplit(folder.path, "", None, folder.read_scores(), evaluation.metrics)
    return [Setting(name or root.name, {"": splits}) for name, splits in groups.items()]


def _setting_and_split(name: str, inside: Path, *, alone: bool, single: bool) -> tuple[str, str | int]:
    """What setting of a folder an evaluation is of, the empty name for the only one, and on which split."""
    run = OF_A_RUN.fullmatch(name)
    if alone and len(inside.parts) > 1:
        return inside.parts[0], int(run["seed"]) if run else inside.relative_to(inside.parts[0]).as_posix()
    if run:
        return run["setting"], int(run["seed"])
    if alone:
        return inside.as_posix(), ONE_SPLIT
    return "", ONE_SPLIT if single else inside.as_posix()


def _folder_names(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell them apart."""
    parts = [path.resolve().parts for path in paths]
    if len(set(parts)) < len(parts):
        raise CarefError("the same folder is given twice; a setting does not differ from itself")
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(each[-length:]) for each in parts]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def on_common_splits(settings: Sequence[Setting]) -> tuple[list[Setting], int]:
    """The settings on the splits that all of them have, and how many splits were left out.

    Raises:
        CarefError: If they have no split in common.
    """
    tasks: dict[str, set[Any]] = {}
    everything: dict[str, set[Any]] = {}
    for setting in settings:
        for task, splits in setting.tasks.items():
            tasks[task] = tasks.get(task, set(splits)) & set(splits)
            everything[task] = everything.get(task, set()) | set(splits)
    for task in list(tasks):
        if not tasks[task] or any(task not in setting.tasks for setting in settings):
            del tasks[task]
    if not tasks:
        raise CarefError("the settings have no split of any task in common")
    common = [
        replace(setting, tasks={task: _only(setting.tasks[task], keys) for task, keys in tasks.items()})
        for setting in settings
    ]
    return common, sum(map(len, everything.values())) - sum(map(len, tasks.values()))


def _only(splits: Splits, keys: set[Any]) -> Splits:
    return {key: split for key, split in splits.items() if key in keys}
