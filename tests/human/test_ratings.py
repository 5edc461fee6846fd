from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from caref.errors import DataError
from caref.human.ratings import read_ratings


def test_a_file_as_it_is_published(published: Any) -> None:
    questions = read_ratings(published.write())
    assert [each.id for each in questions] == [str(number) for number in range(1, 11)]
    first, second = questions[:2]
    assert (first.task, first.system) == ("esnli", "base")
    assert first.fields == {"premise": "A dog runs 1 times", "hypothesis": 'An "animal", runs.'}
    # gt_idx is 1: the second explanation is the gold one.
    assert (first.gold_explanation.text, first.gold_explanation.ratings) == ("second 1", (0, 0, 2))
    assert (first.generated_explanation.text, first.generated_explanation.ratings) == ("first 1", (3, 2, 1))
    assert (second.gold_explanation.text, second.gold_explanation.ratings) == ("first 2", (3, 2, 1))
    assert (first.gold_label, first.answers) == ("neutral", (1, 1, 1))
    assert second.gold_label == "contradiction"


def test_a_column_that_is_lacking_comes_from_the_batch(published: Any) -> None:
    whole = read_ratings(published.write())
    lacking = ["Input.question_1_i", "Input.explanation_7_j"]
    folder = published.write(without=lacking)
    with pytest.raises(DataError, match=r"csv:1: no column Input.question_1_i, and 0 files .*base_input.csv"):
        read_ratings(folder)
    published.write_batch()
    assert read_ratings(folder) == whole


def test_a_batch_of_other_questions_is_refused(published: Any) -> None:
    folder = published.write(without=["Input.question_1_i"])
    for row in published.rows:
        row["Input.4_ques_id"] = "77"
    published.write_batch()
    with pytest.raises(DataError, match=r"csv:2: Input.4_ques_id: .*base_input.csv:2 does not have it so"):
        read_ratings(folder)


def test_a_batch_of_more_hits_is_refused(published: Any) -> None:
    folder = published.write(without=["Input.question_1_i"])
    published.rows += published.rows
    published.write_batch()
    with pytest.raises(DataError, match=r"base_input.csv: 2 HITs; .*csv has 1"):
        read_ratings(folder)


@pytest.mark.parametrize(
    ("row", "column", "word", "told"),
    [
        (
            1,
            "Answer.3-e2",
            "maybe",
            r"csv:3: Answer.3-e2: unknown 'maybe'; expected one of: no, w_no, w_yes, yes",
        ),
        (1, "Answer.3-e2", "Yes", r"csv:3: Answer.3-e2: unknown 'Yes'"),
        (2, "Answer.c10", "3", r"csv:4: Answer.c10: unknown '3'; expected one of: 0, 1, 2"),
        (2, "Answer.c10", "", r"csv:4: Answer.c10: unknown ''"),
        (2, "Input.explanation_9_i", "another", r"csv:4: Input.explanation_9_i: 'another' is not what"),
        (1, "Input.5_ques_id", "6", r"csv:3: Input.5_ques_id: '6' is not what the HIT's first row has"),
    ],
)
def test_what_is_unexpected_is_named(published: Any, row: int, column: str, word: str, told: str) -> None:
    published.rows[row][column] = word
    with pytest.raises(DataError, match=told):
        read_ratings(published.write())


@pytest.mark.parametrize(
    ("column", "word", "told"),
    [
        ("Input.2_gt_idx", "2", r"csv:2: Input.2_gt_idx: unknown '2'; expected one of: 0, 1"),
        ("Input.gt_2", "3", r"csv:2: Input.gt_2: unknown '3'"),
        ("Input.explanation_2_j", " ", r"csv:2: Input.explanation_2_j: empty"),
        ("Input.2_ques_id", "1", r"csv:2: Input.2_ques_id: '1' is that of line 2 too"),
    ],
)
def test_what_is_unexpected_in_all_rows_of_a_hit_is_named(
    published: Any, column: str, word: str, told: str
) -> None:
    for row in published.rows:
        row[column] = word
    with pytest.raises(DataError, match=told):
        read_ratings(published.write())


def test_every_question_needs_three_ratings(published: Any) -> None:
    published.rows.pop()
    with pytest.raises(DataError, match=r"csv:2: 2 ratings of a HIT; expected 3"):
        read_ratings(published.write())


def test_a_rating_that_is_lacking_altogether(published: Any) -> None:
    with pytest.raises(DataError, match=r"csv:1: no column Answer.4-e1"):
        read_ratings(published.write(without=["Answer.4-e1"]))


def test_a_broken_file(published: Any) -> None:
    published.write()
    published.path.write_bytes(published.path.read_bytes() + b'"half,row\r\n')
    with pytest.raises(DataError, match=r"csv:5: not a table row"):
        read_ratings(published.folder)
    published.path.write_bytes(b"")
    with pytest.raises(DataError, match=r"csv: no row"):
        read_ratings(published.folder)


def test_a_wrong_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected FEB's human_eval"):
        read_ratings(tmp_path)
    (tmp_path / "results" / "sbic").mkdir(parents=True)
    with pytest.raises(DataError, match=r"unknown task 'sbic'; expected one of: ecqa, esnli, sensemaking"):
        read_ratings(tmp_path)
    (tmp_path / "results" / "sbic").rename(tmp_path / "results" / "ecqa")
    with pytest.raises(DataError, match=r"no results/<task>/<system>_\*.csv"):
        read_ratings(tmp_path)


def test_all_that_was_published(human_eval: Path) -> None:
    questions = read_ratings(human_eval)
    counts = Counter((each.task, each.system) for each in questions)
    assert len(questions) == 4260
    few = {("esnli", "gpt3"): 310, ("comve", "gpt3"): 350}
    assert counts == {
        (task, system): few.get((task, system), 360)
        for task in ("ecqa", "esnli", "comve")
        for system in ("base", "large", "3b", "gpt3")
    }
    assert len({(each.task, each.shown) for each in questions}) == 1466
    for cell in counts:
        own = [each for each in questions if (each.task, each.system) == cell]
        right = [answer == each.gold for each in own for answer in each.answers]
        assert 0.92 <= round(sum(right) / len(right), 2) <= 0.99


def test_the_readmes_example(human_eval: Path) -> None:
    (first,) = [each for each in read_ratings(human_eval) if (each.task, each.system) == ("ecqa", "base")][:1]
    assert first.fields["question"].startswith("If you lost track of a monkey at home")
    assert first.choices == ("canada", "friend's house", "rain forest", "amazon basin", "african continent")
    assert first.own_choices
    assert first.gold_label == "friend's house"
    assert first.gold_explanation.text.startswith("A friend's home is nearby one's home.")
    assert first.gold_explanation.ratings[0] == 3
    assert first.generated_explanation.text.startswith("friend's house is located in the middle")
    assert first.generated_explanation.ratings[0] == 0
    assert first.answers[0] == 1


def test_the_column_that_one_file_lacks_comes_from_its_batch(human_eval: Path) -> None:
    large = [each for each in read_ratings(human_eval) if (each.task, each.system) == ("ecqa", "large")]
    assert all(each.fields["question"].strip() for each in large)
