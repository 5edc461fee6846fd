"""`caref metrics validate`, on a few ratings made by hand and, slowly, on the published ones."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Caref = Callable[..., Any]
PAGE = Path(__file__).parents[2] / "docs" / "human-ratings.md"
TINY = Path(__file__).parents[1] / "metrics" / "golden" / "tiny-roberta"


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 questions of e-SNLI of two systems, in the published form."""
    folder = tmp_path_factory.mktemp("ratings")
    for system in ("base", "large"):
        path = folder / "results" / "esnli" / f"{system}_Batch.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [_row(hit, rater, system) for hit in range(4) for rater in range(3)]
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\r\n")
            writer.writeheader()
            writer.writerows(rows)
    return folder


def _row(hit: int, rater: int, system: str) -> dict[str, str]:
    cells = {}
    for k in range(1, 11):
        number = 10 * hit + k
        words = " ".join(["the man is playing"] * (1 + (number + len(system)) % 4))
        cells |= {
            f"Input.question_{k}_i": f"the man is playing {number}",
            f"Input.question_{k}_j": "the man is at the bank",
            f"Input.explanation_{k}_i": f"a bank is next to the river {number}",
            f"Input.explanation_{k}_j": f"{words} {number}",
            f"Input.{k}_gt_idx": "0",
            f"Input.{k}_ques_id": str(number),
            f"Input.gt_{k}": "1",
            f"Answer.{k}-e1": "yes",
            f"Answer.{k}-e2": ("no", "w_no", "w_yes", "yes")[(number + rater) % 4],
            f"Answer.c{k}": "1",
        }
    return cells


def test_json(caref: Caref, ratings: Path) -> None:
    arguments = (
        "metrics",
        "validate",
        "--ratings",
        ratings,
        "--encoder",
        TINY,
        "--layer",
        "3",
        "--draws",
        "3",
    )
    ended = caref(*arguments, "--format", "json")
    assert (ended.code, ended.err) == (0, "")
    record = json.loads(ended.out)
    assert (record["n"], record["n_questions"]) == (80, 40)
    names = [each["name"] for each in record["metrics"]]
    assert {"bertscore_f1", "rouge_l", "explanation_length"} <= set(names)
    assert record["differences"]["computed_by"]["layer"] == 3
    assert record["left_out"]["nbert"].startswith("depends on whether the answer is right")


def test_without_its_encoder_nbert_is_left_out_with_the_reason(caref: Caref, ratings: Path) -> None:
    ended = caref("metrics", "validate", "--ratings", ratings, "--draws", "0")
    assert (ended.code, ended.err) == (0, "")
    assert "nbert: encoder 'roberta-large' is neither a directory nor a model that the hub gives" in ended.out
    assert "What a difference in nBERT means is not known here" in ended.out
    assert "rouge_l" in ended.out


def test_markdown_has_a_table_a_section(caref: Caref, ratings: Path) -> None:
    ended = caref("metrics", "validate", "--ratings", ratings, "--draws", "0", "--format", "markdown")
    titles = re.findall(r"^## (.*)$", ended.out, re.MULTILINE)
    assert titles[0] == "What people say"
    assert titles[-2:] == ["What a difference in nBERT can mean", "Left out"]
    tables = re.findall(r"^\| [^|]*\|.*\n\| ---", ended.out, re.MULTILINE)
    assert len(tables) == len(titles) - 2
    assert "| esnli | base | 40 | 40 | 1.0000 | 100.00 (0.00) |" in ended.out


def test_an_encoder_that_was_named_and_is_not_there(caref: Caref, ratings: Path, tmp_path: Path) -> None:
    told = caref("metrics", "validate", "--ratings", ratings, "--encoder", tmp_path / "no").mistake()
    assert told == f"encoder '{tmp_path}/no' is not a directory"


def test_wrong_folders(caref: Caref, ratings: Path, tmp_path: Path) -> None:
    told = caref("metrics", "validate", "--ratings", tmp_path).mistake()
    assert told == f"no folder {tmp_path}/results; expected FEB's human_eval: results/<task>/<system>_*.csv"
    told = caref("metrics", "validate", "--ratings", ratings, "--data", tmp_path / "no").mistake()
    assert told == f"no data folder {tmp_path}/no"


@pytest.mark.parametrize("width", [80, 120])
def test_help(caref: Caref, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", width)
    for page in (("metrics",), ("metrics", "validate")):
        out = caref(*page, "--help").out
        assert "Usage: caref metrics" in out
        assert max(map(len, out.splitlines())) <= width


def on_the_page() -> str:
    text = PAGE.read_text(encoding="utf-8")
    return text.split("<!-- output -->\n")[1].split("<!-- end -->")[0]


@pytest.mark.parametrize(
    "figures",
    [
        "| ecqa | base | 360 | 223 | 0.4926 | 73.98 (26.56) | 177 | 0.3222 | 25.52 (23.70) |",
        "| esnli | gpt3 | 310 | 222 | 0.6215 | 74.37 (32.00) | 204 | 0.5441 | 42.44 (38.18) |",
        "| comve | 3b | 360 | 237 | 0.5444 | 76.05 (24.52) | 230 | 0.5185 | 33.40 (32.37) |",
    ],
)
def test_the_page_has_the_published_figures(figures: str) -> None:
    assert any(line.startswith(figures) for line in on_the_page().splitlines())


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_page_is_what_its_command_prints(caref: Caref, shared: Path) -> None:
    """Without the intervals, which take most of the time; the last digit may differ by machine."""
    data = shared / "data"
    ended = caref(
        "metrics", "validate", "--ratings", data / "human_eval", "--data", data, "--encoder", "offline",
        "--draws", "0", "--format", "markdown",
    )  # fmt: skip
    assert ended.code == 0
    conclusion = "## What a difference in nBERT can mean"
    printed, page = (_without_intervals(text.split(conclusion)[0]) for text in (ended.out, on_the_page()))
    assert re.sub(NUMBER, "#", printed) == re.sub(NUMBER, "#", page)
    for one, other in zip(re.findall(NUMBER, printed), re.findall(NUMBER, page), strict=True):
        assert float(one.replace(",", "")) == pytest.approx(
            float(other.replace(",", "")), abs=0.011, rel=1e-3
        )


NUMBER = r"-?\d[\d,]*(?:\.\d+)?"


def _without_intervals(text: str) -> str:
    return re.sub(r" \(-?[\d.]+ to -?[\d.]+\)", "", text)
