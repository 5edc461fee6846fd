from __future__ import annotations

from pathlib import Path

import pytest

from caref.errors import CarefError, DataError
from caref.protocol import draw_split
from caref.tasks import get_task

QUIZ = """
name: quiz
files: quiz.jsonl
fields: {question: text}
choices: options
answer: right
explanations: why
"""


def test_labels_columns_and_two_suffixes(samples: Path) -> None:
    task = get_task(samples / "own" / "colours.yaml")
    assert (task.name, task.labels, task.licence) == ("colours", ("no", "yes"), "CC0-1.0")
    train, validation = task.load(part="train"), task.load(part="validation")
    assert [example.answer for example in train] == ["yes", "no", "yes", "no"]
    assert train.examples[1].explanations == ("Coal is black.", "It is not white.")
    assert train.examples[1].fields == {"thing": "Coal", "place": "in the cellar"}
    assert [example.id for example in validation] == ["1", "2"]
    assert set(task.prompts) == {"feb", "instruction", "chat", "short"}
    prompt = task.prompts["short"].render(train.examples[0], context_words=1)
    assert prompt.input == "is milk white? context: in"
    assert prompt.target == "yes because Milk is white."
    feb = task.prompts["feb"].render(train.examples[0])
    assert feb.input == r"explain thing: Milk place: in a glass \n (A) no (B) yes"


def test_one_file_serves_both_parts_without_overlap(samples: Path) -> None:
    task = get_task(str(samples / "own" / "quiz.yaml"))
    assert task.labels == ()
    pool = task.load(part="train")
    assert pool.examples == task.load(part="validation").examples
    assert pool.examples[0].choices == ("9", "10") and pool.examples[1].choices == ("10", "11", "12")
    assert [example.answer for example in pool][:2] == ["10", "11"]
    split = draw_split(task.name, task.labels, pool, pool, seed=1, shots=6, eval_size=6)
    assert {example.id for example in split.train}.isdisjoint(example.id for example in split.validation)
    with pytest.raises(DataError, match="validation: 7 examples are to be drawn, 6 are there"):
        draw_split(task.name, task.labels, pool, pool, seed=1, shots=6, eval_size=7)
    with pytest.raises(DataError, match="quiz has no test part"):
        task.load(part="test")


@pytest.mark.parametrize(
    ("answer_as", "right"), [("text", '"b c"'), ("letter", '"b"'), ("index", "1"), ("index", '"1"')]
)
def test_answer_as(tmp_path: Path, answer_as: str, right: str) -> None:
    (tmp_path / "quiz.yaml").write_text(QUIZ + f"answer_as: {answer_as}\n")
    (tmp_path / "quiz.jsonl").write_text(
        f'{{"text": "Which?", "options": ["a", "b c"], "right": {right}, "why": ["It is.", ""]}}\n'
    )
    (example,) = get_task(tmp_path / "quiz.yaml").load()
    assert example.answer == "b c"
    assert example.explanations == ("It is.",)
    assert len(example.id) == 32


def test_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    rows = [
        {"text": "Which?", "options": ["a", "b"], "right": "c" if n == 2 else "a", "why": "x"} for n in (1, 2)
    ]
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "quiz.parquet")
    (tmp_path / "quiz.yaml").write_text(QUIZ.replace("jsonl", "parquet"))
    task = get_task(tmp_path / "quiz.yaml")
    with pytest.raises(DataError, match=r"quiz\.parquet:2: answer 'c' is not among the choices: a, b"):
        task.load()
    assert len(task.load(skip_bad_rows=True)) == 1
    (tmp_path / "quiz.parquet").write_text("no table")
    with pytest.raises(DataError, match=r"quiz\.parquet: not a Parquet file"):
        task.load()


def test_bad_rows_are_named(tmp_path: Path) -> None:
    (tmp_path / "quiz.yaml").write_text(QUIZ + "answer_as: letter\nid: n\n")
    (tmp_path / "quiz.jsonl").write_text(
        '{"n": 1, "text": "Which?", "options": ["a", "b"], "right": "A", "why": "x"}\n'
        '{"n": 1, "text": "Which?", "options": ["a", "b"], "right": "A", "why": "x"}\n'
        '{"n": 2, "text": "Which?", "options": ["a", "b"], "right": "C", "why": "x"}\n'
        '{"n": 3, "text": "Which?", "options": [], "right": "A", "why": "x"}\n'
        '{"n": 4, "text": "Which?", "options": ["a", "b"], "right": "A", "why": []}\n'
        '{"text": "Which?", "options": ["a", "b"], "right": "A", "why": "x"}\n'
    )
    with pytest.raises(DataError) as raised:
        get_task(tmp_path / "quiz.yaml").load()
    for said in (
        "quiz.jsonl:2: duplicate id '1'",
        "quiz.jsonl:3: answer 'C' names no choice; expected one of: A, B",
        "quiz.jsonl:4: no choices",
        "quiz.jsonl:5: empty explanation",
        "quiz.jsonl:6: no n",
    ):
        assert said in str(raised.value)


def test_missing_files_and_columns(tmp_path: Path) -> None:
    (tmp_path / "quiz.yaml").write_text(QUIZ.replace("jsonl", "csv"))
    task = get_task(tmp_path / "quiz.yaml")
    with pytest.raises(
        DataError, match=r"no train part of quiz in [^\n]*holds: quiz\.yaml\.[^\n]*\n  files: quiz\.csv"
    ):
        task.load()
    (tmp_path / "quiz.csv").write_text("text,right,why\nWhich?,a,x\n")
    with pytest.raises(DataError, match=r"quiz\.csv:1: no column options; found: text, right, why"):
        task.load()
    (tmp_path / "quiz.yaml").write_text(QUIZ.replace("jsonl", "xlsx"))
    (tmp_path / "quiz.xlsx").write_text("")
    with pytest.raises(DataError, match=r"expected a file ending in \.jsonl"):
        get_task(tmp_path / "quiz.yaml").load()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fields: {question: text}", "", "missing key 'fields'"),
        ("answer: right", "answers: right", "missing key 'answer'"),
        ("answer: right", "answer: right\nlabel: x", "unknown key 'label'; there are: name, files"),
        ("choices: options", "labels: [yes, no]", "YAML reads an unquoted yes"),
        ("choices: options", "labels: [a]", "labels: at least two are needed"),
        ("choices: options", "labels: [a, a, b]", "labels: one is named twice"),
        ("choices: options", "choices: options\nlabels: [a, b]", "give labels or choices, not both"),
        ("choices: options", "answer_as: letter", "answer_as: letter needs labels or choices"),
        ("choices: options", "choices: options\nanswer_as: label", "answer_as: label needs labels"),
        ("choices: options", "choices: options\nanswer_as: word", "answer_as"),
        ("{question: text}", "{answer: text}", "fields: 'answer' cannot name a field"),
        ("{question: text}", "{}", "fields"),
        ("files: quiz.jsonl", "files: {dev: quiz.jsonl}", "files"),
        ("files: quiz.jsonl", "files: {}", "files: at least one part is needed"),
        ("name: quiz", "name: my quiz", "name"),
        ("name: quiz", "name: esnli", "name: 'esnli' is a task already"),
        ("name: quiz", "name: quiz\nprompts: {p: {input: x}}", "prompt 'p': the input names no field"),
        ("name: quiz", "name: quiz\nprompts: {p: {inputs: x}}", "missing key 'prompts.p.input'"),
    ],
)
def test_bad_keys(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "quiz.yaml"
    file.write_text(QUIZ.replace(old, new))
    with pytest.raises(CarefError) as raised:
        get_task(file)
    assert str(raised.value).startswith(f"{file}: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
