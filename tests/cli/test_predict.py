from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Caref = Callable[..., Any]


def test_a_typed_text(caref: Caref, one_run: Path) -> None:
    ended = caref("predict", one_run, "explain is the sky red?")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines] == ["answer", "explanation", "confidence"]
    assert "(generated)" in lines[2] or "(candidates)" in lines[2]


@pytest.mark.parametrize(
    ("flags", "used", "hint"),
    [
        ((), 1.84321, "(candidates, temperature 1.84 from this run's evaluation)"),
        (("--temperature", "3"), 3.0, "(candidates, temperature 3 as given)"),
        (("--temperature", "1"), None, "(candidates)"),
    ],
)
def test_the_temperature_is_told(
    caref: Caref,
    one_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    used: float | None,
    hint: str,
) -> None:
    """The tiny model writes none of the candidates; here it does."""
    from caref.generation import answering
    from caref.tasks.parsing import ParsedAnswer

    shutil.copytree(one_run, tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    result["metrics"]["temperature"] = {"values": {"temperature": 1.84321}}
    (tmp_path / "run" / "result.json").write_text(json.dumps(result))
    monkeypatch.setattr(answering, "_read", lambda *_: ParsedAnswer("yes", "it is", False))
    told = caref("predict", tmp_path / "run", "is the sky red?", *flags).out.splitlines()
    assert told[2].endswith(hint)
    out = tmp_path / "answers.jsonl"
    file = tmp_path / "q.jsonl"
    file.write_text('{"input": "is the sky red?"}\n')
    caref("predict", tmp_path / "run", "--file", file, "--out", out, *flags)
    answer = json.loads(out.read_text())
    assert answer["temperature"] == used
    assert answer["confidence"] == answer["label_probabilities"]["yes"]
    assert f"{answer['confidence']:.3f}" in told[2]


@pytest.mark.parametrize("temperature", ["0", "-1", "inf", "nan"])
def test_a_temperature_is_a_number_above_0(caref: Caref, one_run: Path, temperature: str) -> None:
    told = caref("predict", one_run, "a", "--temperature", temperature).mistake()
    assert told == f"--temperature must be a finite number above 0, got {float(temperature)}"


def test_standard_input(caref: Caref, one_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("is the sky red?\n\nis the cat blue?\n"))
    answers = [json.loads(line) for line in caref("predict", one_run, "-").out.splitlines()]
    assert [(each["id"], each["input"]) for each in answers] == [
        ("1", "is the sky red?"),
        ("3", "is the cat blue?"),
    ]
    assert set(answers[0]["label_probabilities"]) == {"no", "yes"}
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert "there is nothing to answer" in caref("predict", one_run, "-").mistake()


def test_choices(caref: Caref, one_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("is the sky red?\n"))
    answer = json.loads(caref("predict", one_run, "-", "--choices", "red | blue|").out)
    assert set(answer["label_probabilities"]) == {"red", "blue"}


def test_a_file_in_both_forms(caref: Caref, one_run: Path, tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"input": "is it red?", "id": "a"}\n{"thing": "the sky", "story": "you see it"}\n')
    printed = caref("predict", one_run, "--file", questions)
    assert printed.code == 0
    out = tmp_path / "answers.jsonl"
    ended = caref("predict", one_run, "--file", questions, "--out", out)
    assert ended.out == f"2 answers written to {out}\n"
    assert out.read_text() == printed.out
    assert [json.loads(line)["id"] for line in printed.out.splitlines()] == ["a", "2"]


def test_mistakes(caref: Caref, one_run: Path, runs: Path, tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"input": "a"}\nnonsense\n')
    assert (
        caref("predict", one_run, "--file", questions).mistake()
        == f"{questions}:2: not JSON: Expecting value"
    )
    either = "give either a text (or - for standard input) or --file"
    assert caref("predict", one_run).mistake() == either
    assert caref("predict", one_run, "a", "--file", questions).mistake() == either
    assert "nowhere.jsonl does not exist" in caref("predict", one_run, "--file", "nowhere.jsonl").mistake()
    told = caref("predict", one_run, "a", "--out", tmp_path / "no" / "a.jsonl").mistake()
    assert told == f"--out: {tmp_path}/no does not exist"
    assert "holds no complete run: result.json is missing" in caref("predict", runs, "a").mistake()
    assert "holds no complete run" in caref("predict", tmp_path / "nowhere", "a").mistake()
    assert "tokens, more than the 256 of this run" in caref("predict", one_run, "red " * 400).mistake()


def test_a_base_model_that_has_moved(caref: Caref, one_run: Path, tiny_t5: Path, tmp_path: Path) -> None:
    shutil.copytree(one_run, tmp_path / "run")
    spec = tmp_path / "run" / "spec.json"
    spec.write_text(spec.read_text().replace(str(tiny_t5), "./gone"))
    assert caref("predict", tmp_path / "run", "a").mistake() == "no model at ./gone: the path does not exist"
    moved = caref("predict", tmp_path / "run", "is it red?", "--model", tiny_t5)
    assert moved.out == caref("predict", one_run, "is it red?").out
