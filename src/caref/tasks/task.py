"""A task: the facts of one data set, and reading it from a folder or from the hub, or generating it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caref.errors import CarefError, DataError
from caref.tasks.example import Example
from caref.tasks.pool import Located, Part, Pool, Report, Row, collect
from caref.tasks.prompt import PromptFormat

Found = Mapping[str, list[Path]]
"""Role of a file, as a `Format` names it, to the files found for it."""


@dataclass(frozen=True)
class Format:
    """One way in which a data set lies on disk.

    Attributes:
        name: As `data_format` names it.
        files: Part to the files that it needs: role to alternatives, glob patterns relative to
            the data folder, of which the first that matches anything is taken.
        read: Reads one part from the files found.
    """

    name: str
    files: Mapping[Part, Mapping[str, tuple[str, ...]]]
    read: Callable[[Found, Part, Report], Iterator[Located]]

    def find(self, folder: Path, part: Part) -> Found | None:
        """The files of that part in the folder, or None unless all are there."""
        if part not in self.files:
            return None
        found = {role: _first_match(folder, patterns) for role, patterns in self.files[part].items()}
        return found if all(found.values()) else None

    def expected(self, part: Part) -> str:
        """The files that it needs, in words."""
        if part not in self.files:
            return f"{self.name}: has no {part} part"
        return f"{self.name}: " + " and ".join(
            " or ".join(patterns) for patterns in self.files[part].values()
        )


@dataclass(frozen=True)
class HubCopy:
    """The data set's copy on the Hugging Face hub, read with ``datasets.load_dataset``.

    Attributes:
        path: The repository.
        name: The configuration, where there are several.
        convert: One row, by column, to an example; raises `RowError`.
        splits: Part to the copy's name for it.
        revision: A branch or commit other than the main one.
    """

    path: str
    convert: Callable[[Mapping[str, Any]], Example]
    splits: Mapping[Part, str]
    name: str | None = None
    revision: str | None = None


@dataclass(frozen=True, kw_only=True)
class Task:
    """The facts of one data set.

    Attributes:
        name: As the registry and results name it.
        labels: The answers, where every example has the same; a draw is balanced over them.
            Empty where each example brings its own choices.
        prompts: At least ``"feb"``, ``"instruction"`` and ``"chat"``.
        source: Where the release comes from.
        licence: The release's licence.
        parts: Those that have explanations.
        formats: On disk, in the order in which they are tried; none where the task is generated.
        hub: The copy on the hub, if one is known.
        folders: Names of the data set's own folder inside a folder of several data sets.
        home: The folder that is read where none is given; None means the hub.
        generate: Makes the examples of one part, the same at every call, instead of reading them.
    """

    name: str
    labels: tuple[str, ...]
    prompts: Mapping[str, PromptFormat]
    source: str
    licence: str
    parts: tuple[Part, ...]
    formats: tuple[Format, ...] = ()
    hub: HubCopy | None = None
    folders: tuple[str, ...] = ()
    home: Path | None = None
    generate: Callable[[Part], Iterable[Example]] | None = None

    def load(
        self,
        data: Path | None = None,
        part: Part = "train",
        *,
        data_format: str | None = None,
        skip_bad_rows: bool = False,
    ) -> Pool:
        """Read one part, or generate it.

        Args:
            data: The data set's folder, or the folder that holds it; None reads the hub's copy, and is
                the only value where the task is generated.
            part: Which part.
            data_format: One of `formats` by name; None takes the first whose files are there.
            skip_bad_rows: Leave rows with a problem out, and list them in the pool.

        Raises:
            DataError: If the files are not there, or rows have problems; the message lists
                them with file and line.
        """
        if part not in self.parts:
            raise DataError(
                f"{self.name} has no {part} part with explanations; it has: {', '.join(self.parts)}"
            )
        data = data if data is not None else self.home
        report = Report()
        if self.generate is not None:
            self._refuse_files(data, data_format)
            located, name = _located(self.generate(part)), "generated"
        elif data is None:
            located = self._from_hub(part, data_format, report)
            assert self.hub is not None
            name = f"hub:{self.hub.path}"
        else:
            chosen, found = self.find(Path(data), part, data_format=data_format)
            located, name = chosen.read(found, part, report), chosen.name
        return collect(located, report, data_format=name, skip_bad_rows=skip_bad_rows)

    def find(self, data: Path, part: Part, *, data_format: str | None = None) -> tuple[Format, Found]:
        """The format in which a folder holds that part, and its files; reads nothing.

        Raises:
            DataError: If there is none; the message lists what each format expects.
        """
        if self.generate is not None:
            self._refuse_files(data, data_format)
        if not data.is_dir():
            raise DataError(f"no data folder {data}")
        formats = [each for each in self.formats if data_format in (None, each.name)]
        if not formats:
            known = ", ".join(each.name for each in self.formats)
            raise CarefError(f"{self.name} has no data format {data_format!r}; there are: {known}")
        roots = [*(data / folder for folder in self.folders if (data / folder).is_dir()), data]
        for each in formats:
            for root in roots:
                found = each.find(root, part)
                if found is not None:
                    return each, found
        expected = "\n".join(f"  {each.expected(part)}" for each in formats)
        there = ", ".join(sorted(path.name for path in roots[0].iterdir())[:20]) or "nothing"
        raise DataError(
            f"no {part} part of {self.name} in {roots[0]}, which holds: {there}. Expected one of:\n{expected}"
        )

    def _refuse_files(self, data: Path | None, data_format: str | None) -> None:
        """Files that are given and not read would be taken for those that a run was trained on."""
        if data is not None or data_format is not None:
            wrong = "data folder" if data is not None else "data format"
            raise DataError(f"{self.name} is generated; pass no {wrong}")

    def _from_hub(self, part: Part, data_format: str | None, report: Report) -> Iterator[Located]:
        if self.hub is None:
            raise DataError(
                f"no copy of {self.name} on the hub is known; pass the folder of its release: {self.source}"
            )
        if data_format is not None:
            raise CarefError(
                f"data_format={data_format!r} chooses among files: pass their folder as data too"
            )
        import datasets

        try:
            rows = datasets.load_dataset(
                self.hub.path, self.hub.name, split=self.hub.splits[part], revision=self.hub.revision
            )
        except Exception as error:  # the hub fails in many ways, each with a class of its own
            raise DataError(
                f"cannot read {self.hub.path} from the hub ({type(error).__name__}: {error}); "
                f"offline, pass a folder as data; the release: {self.source}"
            ) from error
        place, convert = f"hub:{self.hub.path}/{self.hub.splits[part]}", self.hub.convert
        numbered = (Row(place, number, values) for number, values in enumerate(rows, start=1))
        return report.convert(numbered, lambda row: convert(row.values))


def _located(examples: Iterable[Example]) -> Iterator[Located]:
    return (Located("generated", number, example) for number, example in enumerate(examples, start=1))


def _first_match(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    for pattern in patterns:
        if (folder / pattern).is_file():
            return [folder / pattern]
        if Path(pattern).is_absolute():
            continue
        matches = sorted(path for path in folder.glob(pattern) if path.is_file())
        if matches:
            return matches
    return []
