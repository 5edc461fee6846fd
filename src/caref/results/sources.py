"""Settings as folders hold them: runs, grouped as a table groups them, or evaluations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from caref.errors import CarefError, DataError
from caref.results.evaluation import Evaluation, EvaluationFolder
from caref.results.paired import by_seed
from caref.results.result import RunIdentity
from caref.results.run_directory import RunDirectory, complete_runs
from caref.results.setting import ScoredSplit, Setting, Splits
from caref.results.table import GROUP

ONE_SPLIT = "the only one"


def read_settings(paths: Sequence[Path], setting_of: Callable[[RunDirectory], str]) -> list[Setting]:
    """Read what is to be compared.

    Args:
        paths: Runs or folders of runs, or evaluations, as ``caref evaluate --out`` writes them, or folders of
            them. Runs, or evaluations of runs, that differ in task and seed alone are a setting. Of
            evaluations of other systems a folder is a setting, and each evaluation in it a split, known by
            its name; a single one is one split. Of one folder alone, each folder in it is a setting: of one
            split, or of those inside.
        setting_of: What tells runs of one task, model, method and objective apart, the same for all seeds.

    Returns:
        In the order of the paths, with names of their own: the folder's, or what differs between the settings
        of a folder.

    Raises:
        DataError: If a path holds neither, or something in it cannot be read.
        CarefError: If paths hold different kinds, or two runs are of the same split.
    """
    for path in paths:
        if path.is_file():
            raise DataError(f"{path} is a file; caref evaluate {path} --out FOLDER makes what is compared")
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


@dataclass(frozen=True, slots=True)
class _OfRun:
    """A split that a run was made on, whether the run or its evaluation was read."""

    run: RunIdentity
    setting: str
    split: ScoredSplit


def _settings_at(
    path: Path, setting_of: Callable[[RunDirectory], str], *, alone: bool
) -> tuple[str, list[Setting]]:
    if runs := list(complete_runs(path)):
        return "runs", _of_runs([_read_run(run, setting_of(run)) for run in runs])
    if not (files := sorted(path.rglob("evaluation.json"))):
        raise DataError(
            f"{path} holds neither a complete run nor an evaluation; "
            "caref run --out and caref evaluate --out make them"
        )
    folders = [EvaluationFolder(file.parent) for file in files]
    evaluations = [(folder, folder.read()) for folder in folders]
    of_runs = [
        _OfRun(each.run, each.setting, _split_of(folder, each)) for folder, each in evaluations if each.run
    ]
    if len(of_runs) == len(evaluations):
        return "evaluations", _of_runs(of_runs)
    return "evaluations", _of_other_systems(path, evaluations, alone=alone)


def _read_run(run: RunDirectory, setting: str) -> _OfRun:
    result = run.read_result()
    return _OfRun(result.identity, setting, ScoredSplit.of_run(run, result))


def _split_of(folder: EvaluationFolder, evaluation: Evaluation) -> ScoredSplit:
    run = evaluation.run
    return ScoredSplit(
        path=folder.path,
        task=run.task if run else "",
        checksum=run.split_checksum if run else None,
        scores=folder.read_scores(),
        metrics=evaluation.metrics,
    )


def _of_runs(found: Sequence[_OfRun]) -> list[Setting]:
    # What a setting is called, to its tasks, to the hash that tells two of that name apart, to its runs.
    groups: dict[tuple[str, ...], dict[str, dict[str, list[_OfRun]]]] = {}
    for one in found:
        task, *rest = (getattr(one.run, name) for name in GROUP[:-1])
        by_task = groups.setdefault(tuple(rest), {})
        by_task.setdefault(task, defaultdict(list))[one.setting].append(one)
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


def _setting(name: str, tasks: Mapping[str, Sequence[_OfRun]]) -> Setting:
    splits = {task: ((each.run.seed, each.split) for each in runs) for task, runs in sorted(tasks.items())}
    return Setting(name, {task: dict(sorted(by_seed(found, name).items())) for task, found in splits.items()})


def _of_other_systems(
    root: Path, evaluations: Sequence[tuple[EvaluationFolder, Evaluation]], *, alone: bool
) -> list[Setting]:
    """Evaluations that name no run: by the folders in which they lie."""
    groups: dict[str, dict[str, ScoredSplit]] = defaultdict(dict)
    for folder, evaluation in evaluations:
        inside = folder.path.relative_to(root)
        group, key = _setting_and_split(inside, alone=alone, single=len(evaluations) == 1)
        groups[group][key] = _split_of(folder, evaluation)
    return [Setting(name or root.name, {"": splits}) for name, splits in groups.items()]


def _setting_and_split(inside: Path, *, alone: bool, single: bool) -> tuple[str, str]:
    """What setting of a folder an evaluation is of, the empty name for the only one, and on which split."""
    if not alone:
        return "", ONE_SPLIT if single else inside.as_posix()
    if len(inside.parts) > 1:
        return inside.parts[0], inside.relative_to(inside.parts[0]).as_posix()
    return inside.as_posix(), ONE_SPLIT


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
