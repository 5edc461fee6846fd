"""Reading a JSON file as the value that it holds."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from caref.errors import DataError

Model = TypeVar("Model", bound=BaseModel)


def read_model(path: Path, model: type[Model], what: str) -> Model:
    """Read a file that `write_json` wrote.

    Args:
        path: The file.
        model: Of the value.
        what: The value in words, as the message has it: ``"a run result"``.

    Raises:
        DataError: If the file cannot be read or holds another value.
    """
    try:
        return model.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        told = f"{where}: {first['msg']}" if where else first["msg"]
        raise DataError(f"{path}: not {what}: {told}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"cannot read {path}: {error}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
