"""Flags made from the settings of a run, so that no setting lacks one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Container
from typing import Annotated, Any, Literal, get_type_hints

import typer

from caref.experiments.flat import FlatSetting, flat_settings

PANELS = {
    "": "Run",
    "task_settings": "Task",
    "training": "Training",
    "method_settings": "Method",
    "objective_settings": "Objective",
    "metric_settings": "Metrics",
}

_WIDEST = 24


def with_setting_flags(
    *, leave_out: Container[str] = (), sections: Container[str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a flag for every setting of a run, or of some parts of it.

    The command gets those that were given as one argument, `settings`, a mapping by plain name.

    Args:
        leave_out: Settings that the command asks for in another way.
        sections: Only the settings of these parts, keys of `PANELS`.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        table = {name: flat for name, flat in flat_settings(sections).items() if name not in leave_out}
        hints = get_type_hints(command, include_extras=True)
        own = [
            parameter.replace(annotation=hints[parameter.name])
            for parameter in inspect.signature(command).parameters.values()
            if parameter.name != "settings"
        ]
        parameters = [
            *own,
            *(
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(flat)
                )
                for name, flat in table.items()
            ),
        ]

        def with_flags(**values: Any) -> None:
            given = {name: _value(table[name], values.pop(name)) for name in table if name in values}
            command(**values, settings={name: value for name, value in given.items() if value is not None})

        with_flags.__doc__ = command.__doc__
        with_flags.__name__ = command.__name__
        with_flags.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_flags.__annotations__ = {p.name: p.annotation for p in parameters}
        return with_flags

    return decorate


def _annotation(flat: FlatSetting) -> Any:
    setting = flat.setting
    kind: Any = str if setting.type is tuple else setting.type
    if setting.choices:
        kind = Literal[setting.choices]
    flag = f"--{setting.name.replace('_', '-')}"
    only = f" Only for: {', '.join(flat.entries)}." if flat.entries else ""
    default = ", ".join(setting.default) if isinstance(setting.default, tuple) else setting.default
    default = "on" if default is True else default
    # By identity: 0 is a default worth telling, and equal to False.
    silent = any(default is nothing for nothing in (None, False, inspect.Parameter.empty))
    told = "" if silent else f" Default: {default}."
    described = re.sub(r"None (means|takes)", "without it,", setting.description.replace("`", "")).rstrip(".")
    listed = "|".join(setting.choices)
    if len(listed) > _WIDEST:  # such a column would leave the description none of 80 characters
        described += f": {' or '.join(setting.choices)}"
    # The default is None, so that a flag that was not given does not hide what a file says.
    option = typer.Option(
        f"{flag}/--no-{flag[2:]}" if setting.default is True else flag,
        help=f"{described[:1].upper()}{described[1:]}.{only}{told}",
        metavar="<word>" if len(listed) > _WIDEST else None,
        rich_help_panel=PANELS[flat.section],
    )
    return Annotated[kind | None, option]


def _value(flat: FlatSetting, value: Any) -> Any:
    if flat.setting.type is tuple and value is not None:
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value
