"""The pages on evaluation name every value that there is, and say what the commands print."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from caref.cli import build
from caref.generation.prediction import Prediction
from caref.metrics import METRICS
from caref.metrics.nbert import NBert

DOCS = Path(__file__).resolve().parents[2] / "docs"
README = DOCS.parent / "README.md"

FOUR = [
    Prediction(
        id=str(place),
        input="Is milk white?",
        label="yes",
        explanation="milk is white",
        gold_label=gold,
        gold_explanations=("milk is as white as snow",),
        confidence=0.75,
        confidence_source="candidates",
        label_probabilities={"yes": 0.75, "no": 0.25},
    )
    for place, gold in enumerate(["yes", "yes", "yes", "no"])
]


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def in_one_line(text: str) -> str:
    return " ".join(text.replace("\n  > ", " ").split())


def value_names(metric: str) -> set[str]:
    """Those of a metric; nBERT, which would load an encoder, has the same names without predictions."""
    entry = METRICS.get(metric)
    return set(entry().compute([] if entry is NBert else FOUR).values)


@pytest.mark.parametrize("metric", METRICS.names())
def test_the_evaluation_page_names_every_value(metric: str) -> None:
    named = set(re.findall(r"`([^`\n]+)`", page("evaluation.md")))

    assert value_names(metric) - named == set()


def test_the_predictions_page_names_every_field_and_no_other() -> None:
    rows = re.findall(r"^\| (`.+?`) \|", page("predictions.md"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}

    assert named == set(Prediction.model_fields)


def test_the_null_bands_on_the_evaluation_page_are_what_its_lines_print() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", page("evaluation.md"), re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page("evaluation.md"), re.MULTILINE | re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "evaluation.md", "exec"), {})

    assert printed.getvalue().strip() == shown.strip()


def test_what_the_evaluation_page_quotes_of_the_ratings_stands_there() -> None:
    (quoted,) = re.findall(r"^  > .+(?:\n  > .+)*", page("evaluation.md"), re.MULTILINE)

    assert in_one_line(quoted.removeprefix("  > ")) in in_one_line(page("human-ratings.md"))


def test_the_papers_table_is_what_the_command_prints() -> None:
    (shown,) = re.findall(
        r"^<!-- caref compare --paper --format markdown -->\n(.*?)^<!-- end -->$",
        page("paper-table.md"),
        re.MULTILINE | re.DOTALL,
    )
    done = CliRunner().invoke(build(["compare"]), ["compare", "--paper", "--format", "markdown"])

    assert done.exit_code == 0
    assert shown.strip() == done.stdout.strip()


def test_the_commands_within_sentences_are_understood() -> None:
    lines = re.findall(r"`(caref (?:evaluate|compare) [^`]+)`", README.read_text(encoding="utf-8"))

    assert {line.split()[1] for line in lines} == {"evaluate", "compare"}
    for line in lines:
        _, name, *arguments = shlex.split(line)
        command = typer.main.get_command(build([name])).commands[name]
        command.make_context(name, arguments)  # raises on an unknown flag or a value of the wrong kind
