"""Rated questions made by hand, and a folder of them in the published form."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from caref.human.ratings import RatedExplanation, RatedQuestion


@pytest.fixture(scope="session")
def human_eval(shared: Path) -> Path:
    """The ratings published with FEB."""
    folder = shared / "data" / "human_eval"
    if not folder.is_dir():
        pytest.skip(f"no ratings: {folder} is absent")
    return folder


@pytest.fixture
def make_question() -> Callable[..., RatedQuestion]:
    """A rated question of e-SNLI; keywords change it."""

    def make(
        number: int = 0,
        *,
        system: str = "base",
        task: str = "esnli",
        gold: Sequence[int] = (3, 3, 3),
        generated: Sequence[int] = (0, 1, 2),
        text: str = "a dog is an animal",
    ) -> RatedQuestion:
        return RatedQuestion(
            task=task,
            system=system,
            id=str(number),
            fields={"premise": f"A dog runs {number} times.", "hypothesis": "An animal runs."},
            choices=("entailment", "neutral", "contradiction"),
            own_choices=False,
            gold=0,
            gold_explanation=RatedExplanation("Every dog is an animal.", tuple(gold)),
            generated_explanation=RatedExplanation(text, tuple(generated)),
            answers=(0, 0, 1),
        )

    return make


@dataclass
class Published:
    """One results file of e-SNLI in the published form, as rows of cells that a test may change."""

    folder: Path
    hits: int = 1
    name: str = "esnli"
    file: str = "base_Batch_1_results.csv"
    rows: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for hit in range(self.hits):
            self.rows += [self._row(hit, rater) for rater in range(3)]

    def _row(self, hit: int, rater: int) -> dict[str, str]:
        cells = {}
        for k in range(1, 11):
            number = 10 * hit + k
            cells |= {
                f"Input.question_{k}_i": f"A dog runs {number} times",
                f"Input.question_{k}_j": 'An "animal", runs.',
                f"Input.explanation_{k}_i": f"first {number}",
                f"Input.explanation_{k}_j": f"second {number}",
                f"Input.{k}_gt_idx": str(k % 2),
                f"Input.{k}_ques_id": str(number),
                f"Input.gt_{k}": str(k % 3),
                f"Answer.{k}-e1": ("yes", "w_yes", "w_no")[rater],
                f"Answer.{k}-e2": ("no", "no", "w_yes")[rater],
                f"Answer.c{k}": str(k % 3),
            }
        return {**cells, "Answer.q1": "yes"}

    @property
    def path(self) -> Path:
        return self.folder / "results" / self.name / self.file

    def write(self, *, without: Sequence[str] = ()) -> Path:
        """Write the results, without some columns, and give back the folder."""
        kept = [{name: row[name] for name in row if name not in without} for row in self.rows]
        _write(self.path, kept)
        return self.folder

    def write_batch(self, file: str = "human_eval_esnli_t5-base_input.csv") -> Path:
        shown = [
            {name.removeprefix("Input."): row[name] for name in row if name.startswith("Input.")}
            for row in self.rows[::3]
        ]
        _write(self.folder / "batches" / file, shown)
        return self.folder / "batches" / file


def _write(path: Path, rows: Sequence[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\r\n")
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def published(tmp_path: Path) -> Published:
    return Published(tmp_path / "human_eval")
