"""The examples of docs/data.md work as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from caref.errors import CarefError
from caref.tasks import TASKS, get_task
from caref.tasks.prompt_file import load_prompt

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text(encoding="utf-8")


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)[number]


def test_python_example(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = block("python").replace('Path("data")', "samples").replace("seed=", "shots=3, eval_size=3, seed=")
    exec(code, {"samples": samples})
    assert capsys.readouterr().out.startswith("explain nli hypothesis: ")


def test_generated_example(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {"__name__": "parity"}
    exec(block("python", 1), names)
    monkeypatch.setitem(TASKS._objects, "parity", names["parity"])
    task = get_task("parity", {"size": 100})
    assert (len(task.load(None, "train")), len(task.load(None, "validation"))) == (100, 100)
    prompt = task.prompts["feb"].render(task.load(None, "train").examples[7])
    assert (prompt.input, prompt.target) == ("Is 7 even?", "no because it ends in 7")
    with pytest.raises(CarefError, match="size must be at least 2, got 1"):
        get_task("parity", {"size": 1})
    assert 'parity = "my_package.parity:parity"' in block("toml")


def test_own_data_example(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(block("yaml", 0))
    (tmp_path / "train.csv").write_text(
        "case,symptom_text,patient_history,gold,reason,second_reason\n7,Cough,Asthma,1,It may get worse.,\n"
    )
    task = get_task(tmp_path / "task.yaml")
    (example,) = task.load(part="train")
    prompt = task.prompts["short"].render(example)
    assert (example.id, prompt.input) == ("7", "symptoms: cough history: Asthma")
    assert prompt.target == "urgent because It may get worse."


def test_own_prompt_example(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(block("yaml", 1))
    example = get_task("esnli").load(samples, "train").examples[0]
    assert (
        "\nHypothesis: a person prepares food.\n" in load_prompt(tmp_path / "mine.yaml").render(example).input
    )


def test_tables_name_every_task_and_format() -> None:
    for name in TASKS:
        assert f"`{name}`" in PAGE
        for each in get_task(name).formats:
            assert f"`{each.name}`" in PAGE
