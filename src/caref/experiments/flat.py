"""Settings by plain name: what a YAML file holds and what a flag is called.

``alpha: 1.5`` in a file and ``--alpha 1.5`` on the command line mean the same; both become the
nested `RunSpec`. The names are collected here from the spec, the training settings and every entry of
the registries, so that nothing has to list them by hand.
"""

from __future__ import annotations

import difflib
from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from caref.errors import CarefError
from caref.experiments.spec import RunSpec, resolve_spec
from caref.registry import Registry
from caref.settings import Setting, declared_settings
from caref.training.settings import TrainingSettings

NESTED = frozenset(
    {
        "training",
        "task_settings",
        "method_settings",
        "objective_settings",
        "metric_settings",
        "file_hashes",
    }
)


@dataclass(frozen=True, slots=True)
class FlatSetting:
    """One setting under its plain name.

    Attributes:
        setting: Name, type, choices, default and description.
        section: The part of the spec that it goes to; empty for the spec's own fields.
        entries: The registry entries that have it; empty where it always applies.
    """

    setting: Setting
    section: str
    entries: tuple[str, ...] = ()


def flat_settings(sections: Container[str] | None = None) -> dict[str, FlatSetting]:
    """Every setting of a run by its plain name; imports every entry of the registries.

    Args:
        sections: Only these parts of the spec, as `FlatSetting.section` names them; of the others nothing
            is imported.
    """
    from caref.losses import OBJECTIVES
    from caref.methods import METHODS
    from caref.metrics import METRICS
    from caref.tasks import TASKS

    table: dict[str, FlatSetting] = {}
    models: dict[str, type[BaseModel]] = {"": RunSpec, "training": TrainingSettings}
    registries: dict[str, Registry[Any]] = {
        "task_settings": TASKS,
        "method_settings": METHODS,
        "objective_settings": OBJECTIVES,
        "metric_settings": METRICS,
    }
    for section in (each for each in models if sections is None or each in sections):
        for setting in _fields(models[section]):
            _put(table, FlatSetting(setting, section))
    for section in (each for each in registries if sections is None or each in sections):
        for name, entry in registries[section].items():
            for setting in declared_settings(entry).values():
                known = table.get(setting.name)
                having = (*known.entries, name) if known and known.section == section else (name,)
                first = known.setting if known and known.section == section else setting
                _put(table, FlatSetting(first, section, having))
    return table


def spec_from_flat(given: Mapping[str, Any]) -> RunSpec:
    """A complete spec from settings by plain name.

    Raises:
        CarefError: If a name is unknown, or belongs to an entry that was not chosen.
    """
    table = flat_settings()
    nested: dict[str, Any] = {}
    for name, value in given.items():
        if name not in table:
            near = difflib.get_close_matches(name, table, n=1)
            hint = f"did you mean {near[0]!r}? See" if near else "see"
            raise CarefError(f"unknown setting {name!r}; {hint}: caref run --help")
        section, value = table[name].section, _as_typed(table[name].setting, value)
        if section:
            nested.setdefault(section, {})[name] = value
        else:
            nested[name] = value
    return resolve_spec(**nested)


def _as_typed(setting: Setting, value: Any) -> Any:
    """A value as the flag of that name would give it: a list from "a,b", a number from "1e-4".

    YAML 1.1 reads 1e-4, without a dot, as a text.
    """
    if not isinstance(value, str):
        return tuple(value) if setting.type is tuple and isinstance(value, list) else value
    if setting.type is tuple:
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if setting.type is float:
        with suppress(ValueError):
            return float(value)
    return value


def _put(table: dict[str, FlatSetting], new: FlatSetting) -> None:
    known = table.get(new.setting.name)
    if known is not None and known.section != new.section:
        sections = " and ".join(section or "run" for section in (known.section, new.section))
        raise ValueError(f"the setting {new.setting.name!r} is declared twice: in {sections}; rename one")
    table[new.setting.name] = new


def _fields(model: type[BaseModel]) -> list[Setting]:
    hints = get_type_hints(model)
    settings = []
    for name, field in model.model_fields.items():
        if name in NESTED:
            continue
        hint, choices = hints[name], ()
        if get_origin(hint) is Literal:
            hint, choices = str, tuple(get_args(hint))
        elif get_origin(hint) is tuple:
            hint = tuple
        elif get_args(hint):
            hint = get_args(hint)[0]
        default = None if field.is_required() else field.default
        settings.append(Setting(name, hint, choices, default, field.description or ""))
    return settings
