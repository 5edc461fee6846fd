"""Every kind of bad row is named with its file and line, and can be skipped on request."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from caref.errors import DataError
from caref.tasks import get_task

TRAIN = "esnli/ukplab/random/sub_0/512/train_select.json"


def esnli_rows(folder: Path, *lines: bytes) -> Path:
    """A folder whose e-SNLI training file has a good first line, then those."""
    good = {"premise": "P", "hypothesis": "H", "label": 0, "explanation_1": "because of P"}
    file = folder / TRAIN
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\n".join([json.dumps(good).encode(), *lines]) + b"\n")
    return file


def row(**changes: object) -> bytes:
    values = {"premise": "P2", "hypothesis": "H2", "label": 1, "explanation_1": "why not"}
    return json.dumps({**values, **changes}).encode()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"premise": "P"', "not JSON: Expecting ',' delimiter"),
        (b"[1, 2]", "expected a JSON object"),
        (b'{"premise": "\xff"}', "not UTF-8: byte 14 is 0xff"),
        (row(label=3), "unknown label '3'; expected one of: 0, 1, 2"),
        (row(label=-1), "unknown label '-1'"),
        (row(explanation_1=" "), "empty explanation_1"),
        (row(premise=""), "empty premise"),
        (row(premise="\ud83d"), "half of a surrogate pair"),
        (row(hypothesis=None), "hypothesis must be a text, got None"),
        (b'{"premise": "P", "label": 1}', "no hypothesis"),
    ],
)
def test_bad_jsonl_rows(tmp_path: Path, line: bytes, message: str) -> None:
    file = esnli_rows(tmp_path, line)
    with pytest.raises(DataError) as raised:
        get_task("esnli").load(tmp_path, "train")
    assert f"{file}:2: {message}" in str(raised.value)
    assert str(raised.value).startswith("1 bad row;")
    pool = get_task("esnli").load(tmp_path, "train", skip_bad_rows=True)
    assert len(pool) == 1
    (problem,) = pool.problems
    assert (problem.file, problem.line) == (str(file), 2)
    assert problem.message.startswith(message)


def test_ten_problems_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    esnli_rows(tmp_path, *[b"nonsense"] * 13)
    with pytest.raises(DataError) as raised:
        get_task("esnli").load(tmp_path, "train")
    lines = str(raised.value).splitlines()
    assert lines[0].startswith("13 bad rows")
    assert len(lines) == 12
    assert lines[-1] == "  and 3 more"


def test_nothing_usable_is_an_error_even_when_skipping(tmp_path: Path) -> None:
    file = esnli_rows(tmp_path)
    file.write_text("nonsense\n")
    with pytest.raises(DataError, match=r"no usable row in .*train_select\.json"):
        get_task("esnli").load(tmp_path, "train", skip_bad_rows=True)
    file.write_text("")
    with pytest.raises(DataError, match="no usable row"):
        get_task("esnli").load(tmp_path, "train")


def test_blank_lines_and_a_byte_order_mark_are_no_problem(tmp_path: Path) -> None:
    file = esnli_rows(tmp_path, b"", row(), b"  ")
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert len(get_task("esnli").load(tmp_path, "train")) == 2


@pytest.fixture
def copied(samples: Path, tmp_path: Path) -> Path:
    shutil.copytree(samples, tmp_path / "samples")
    return tmp_path / "samples"


def problems(folder: Path, name: str, part: str, **options: str) -> list[str]:
    with pytest.raises(DataError) as raised:
        get_task(name).load(folder, part, **options)
    return [line.strip() for line in str(raised.value).splitlines()[1:]]


def test_csv_line_numbers_count_line_breaks_in_cells(copied: Path) -> None:
    file = copied / "ecqa" / "cqa_data_val.csv"
    content = file.read_text()
    assert content.count("\n") > 4  # the first row's cells hold a line break
    file.write_text(content + "3,only,three\n")
    (problem,) = problems(copied, "ecqa", "validation")
    line = content.count("\n") + 1
    assert problem.startswith(f"{file}:{line}: expected 13 columns (, q_no, q_concept")
    assert problem.endswith("got 3")


def test_csv_quote_left_open(copied: Path) -> None:
    file = copied / "ecqa" / "cqa_data_test.csv"
    line = file.read_text().count("\n") + 1
    file.write_text(file.read_text() + '2,id,"never closed\n')
    (problem,) = problems(copied, "ecqa", "test")
    assert problem.startswith(f"{file}:{line}: not a table row")


def test_csv_bytes_that_are_not_utf8(copied: Path) -> None:
    file = copied / "comve" / "Dev_Data" / "subtaskA_dev_data.csv"
    file.write_bytes(file.read_bytes().replace(b"Birds", b"B\xefrds"))
    found = problems(copied, "comve", "validation")
    assert f"{file}:5: not UTF-8: byte 4 is 0xef" in found
    assert any("id '3' is not in" in problem for problem in found)
    pool = get_task("comve").load(copied, "validation", skip_bad_rows=True)
    assert [example.id for example in pool] == ["0", "1", "2", "4", "5"]


def test_csv_bytes_that_are_not_utf8_inside_a_longer_cell(copied: Path) -> None:
    file = copied / "ecqa" / "cqa_data_train.csv"
    assert b"heats bread.\nHot bread" in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(b"Hot bread", b"H\xf4t bread"))
    assert problems(copied, "ecqa", "train") == [f"{file}:3: not UTF-8: byte 2 is 0xf4"]
    pool = get_task("ecqa").load(copied, "train", skip_bad_rows=True)
    assert len(pool) == 3
    assert "toaster" not in {example.answer for example in pool}


def test_missing_column(copied: Path) -> None:
    file = copied / "esnli" / "esnli_dev.csv"
    file.write_text(file.read_text().replace("gold_label", "label", 1))
    with pytest.raises(DataError, match=r"esnli_dev\.csv:1: no column gold_label; found: pairID, label"):
        get_task("esnli").load(copied, "validation", skip_bad_rows=True)


def test_duplicate_id(copied: Path) -> None:
    file = copied / "esnli" / "esnli_dev.csv"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines, lines[1]]))
    (problem,) = problems(copied, "esnli", "validation")
    assert problem == f"{file}:8: duplicate id '2000.jpg#1r1e', first seen at {file}:2"


def test_comve_files_that_disagree(copied: Path) -> None:
    folder = copied / "comve" / "Training_Data"
    answers = folder / "subtaskA_answers_all.csv"
    references = folder / "subtaskC_answers_all.csv"
    answers.write_text("0,0\n1,2\n2,0\n3,1\n4,0\n4,0\n9,1\n")
    references.write_text(references.read_text().replace("Ears have no fingers.", ""))
    sentences = folder / "subtaskA_data_all.csv"
    assert problems(copied, "comve", "train") == [
        f"{answers}:6: duplicate id '4', first seen at {answers}:5",
        f"{answers}:2: unknown label '2'; expected 0 or 1",
        f"{sentences}:7: id '5' is not in {answers}",
        f"{answers}:7: id '9' is not in {sentences}",
    ]
    answers.write_text("0,0\n1,1\n2,0\n3,1\n4,0\n5,1\n")
    assert problems(copied, "comve", "train") == [f"{references}:2: empty explanation"]


def test_join_partners_that_are_missing(copied: Path) -> None:
    questions = copied / "commonsenseqa" / "v1.11" / "train_rand_split.jsonl"
    first, *others = questions.read_text().splitlines(keepends=True)
    questions.write_text("".join(others))
    id_ = json.loads(first)["id"]
    (problem,) = problems(copied, "cos_e_v1.11", "train")
    assert problem.endswith(f":1: no question with id {id_!r} in the CommonsenseQA files")
    (problem,) = problems(copied, "ecqa", "train", data_format="flan-tsv")
    assert problem.endswith("ecqa_train.tsv:1: no CommonsenseQA question with this stem and these choices")
    annotations = copied / "ecqa" / "ecqa.jsonl"
    annotations.write_text("".join(annotations.read_text().splitlines(keepends=True)[2:]))
    (problem,) = problems(copied, "ecqa", "train", data_format="release-jsonl")
    assert problem.endswith(f"train_ids.txt:1: no positives for id {id_!r} in {annotations}")


def test_questions_of_another_version(copied: Path) -> None:
    shutil.copy(copied / "commonsenseqa" / "v1.11" / "dev_rand_split.jsonl", copied / "cos_e" / "v1.0")
    assert "expected 3 choices, got 5: another version?" in problems(copied, "cos_e", "validation")[0]


def test_answer_that_is_no_choice(copied: Path) -> None:
    file = copied / "ecqa" / "cqa_data_test.csv"
    file.write_text(file.read_text().replace(",scissors,Scissors", ",knife,Scissors"))
    (problem,) = problems(copied, "ecqa", "test")
    assert "answer 'knife' is not among the choices: scissors, spoon, towel, pillow, string" in problem


def test_json_array_that_is_none(copied: Path) -> None:
    file = copied / "esnli" / "ye_durrett" / "dev.json"
    file.write_text('[{"id": "1"},\n]')
    with pytest.raises(DataError, match=r"dev\.json:\d: not JSON"):
        get_task("esnli").load(copied, "validation", data_format="ye_durrett")
    file.write_bytes(b'[{"id": "1"},\n{"id": "\xff"}]')
    with pytest.raises(DataError, match=r"dev\.json:2: not UTF-8"):
        get_task("esnli").load(copied, "validation", data_format="ye_durrett", skip_bad_rows=True)
    file.write_text("{}")
    with pytest.raises(DataError, match=r"dev\.json:1: expected a JSON array"):
        get_task("esnli").load(copied, "validation", data_format="ye_durrett")
