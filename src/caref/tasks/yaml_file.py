"""Reading a YAML file into a checked model, with errors of one line that name file and key."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from caref.errors import CarefError

Model = TypeVar("Model", bound=BaseModel)


def read_yaml(path: Path, model: type[Model]) -> Model:
    """The file's content as that model.

    Raises:
        CarefError: If there is no such file, if it is no YAML, or if a key is missing, unknown or
            has a wrong value.
    """
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CarefError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CarefError(f"{path}: not UTF-8") from error
    except yaml.YAMLError as error:
        raise CarefError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise CarefError(f"{path}: expected keys and values, got {type(content).__name__}")
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise CarefError(f"{path}: {_first(error, model)}") from None


def _first(error: ValidationError, model: type[BaseModel]) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(step) for step in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key {key!r}; there are: {', '.join(model.model_fields)}"
    if first["type"] == "missing":
        return f"missing key {key!r}"
    if isinstance(first["input"], bool) and first["type"] == "string_type":
        return f"{key}: YAML reads an unquoted yes, no, on, off, true or false as a truth value; quote it"
    told = f"{first['msg'].removeprefix('Value error, ')}"
    return f"{key}: {told}" if key else told
