"""Prompt formats of the user's own, from YAML."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from caref.errors import CarefError
from caref.tasks.parsing import SEPARATOR
from caref.tasks.prompt import PromptFormat
from caref.tasks.yaml_file import read_yaml


class PromptKeys(BaseModel):
    """The keys of a prompt in YAML: those of `PromptFormat`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: str
    target: str | None = None
    separator: str = SEPARATOR
    context: str | None = None
    chat: bool = False
    system: str | None = None
    collapse: bool = False

    def to_format(self, name: str) -> PromptFormat:
        """The prompt format; the target is answer, separator, explanation where none is given."""
        target = self.target if self.target is not None else f"{{answer}}{self.separator}{{explanation}}"
        return PromptFormat(name=name, **{**self.model_dump(), "target": target})


class _PromptFile(PromptKeys):
    name: str | None = None

    def to_format(self, name: str) -> PromptFormat:
        return PromptKeys(**self.model_dump(exclude={"name"})).to_format(self.name or name)


def load_prompt(path: Path) -> PromptFormat:
    """A prompt format from a YAML file; its name is the file's unless it gives one.

    Raises:
        CarefError: If the file does not describe a prompt.
    """
    keys = read_yaml(path, _PromptFile)
    try:
        return keys.to_format(path.stem)
    except CarefError as error:
        raise CarefError(f"{path}: {error}") from None
