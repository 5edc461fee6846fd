from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from caref.errors import DataError
from caref.human.ratings import RatedQuestion, read_ratings
from caref.human.references import other_references, same_text
from caref.tasks.pool import Report
from caref.tasks.reading import read_table


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("A man , in blue .", "a man, in blue", True),
        ("it does n't", "It doesn't.", True),
        ("`` yes ''", '"yes"', True),
        ("a -LRB- b -RRB-", "a (b)", True),
        ("a man", "a woman", False),
    ],
)
def test_copies_of_a_text(one: str, other: str, same: bool) -> None:
    assert (same_text(one) == same_text(other)) is same


def _esnli(folder: Path, *explanations: str, premise: str = "A dog runs 1 times .") -> Path:
    (folder / "esnli" / "las").mkdir(parents=True, exist_ok=True)
    (folder / "esnli" / "las" / "dev.tsv").write_text(
        "unique_key\tlabel\tpremise\thypothesis\texplanation1\texplanation2\texplanation3\n"
        f"1\t1\t{premise}\tAn animal runs .\t" + "\t".join(explanations) + "\n"
    )
    return folder


def test_the_shown_explanation_and_its_copies_are_left_out(
    make_question: Callable[..., RatedQuestion], tmp_path: Path
) -> None:
    data = _esnli(tmp_path, "every dog is an animal .", "Dogs are animals", "dogs are animals .")
    assert other_references([make_question(1), make_question(2)], data) == [("Dogs are animals",), ()]


def test_the_first_format_that_holds_a_question_is_taken(
    make_question: Callable[..., RatedQuestion], tmp_path: Path
) -> None:
    data = _esnli(tmp_path, "does n't matter", "x", "y")
    (data / "esnli" / "ye_durrett").mkdir()
    (data / "esnli" / "ye_durrett" / "dev.json").write_text(
        '[{"id": "1", "premise": "A dog runs 1 times.", "hypothesis": "An animal runs.", '
        '"label": "entailment", "explanations": [{"text_explanation": "Natural."}]}]'
    )
    assert other_references([make_question(1)], data) == [("Natural.",)]


def test_a_data_set_that_is_not_there(make_question: Callable[..., RatedQuestion], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no validation part of esnli"):
        other_references([make_question()], tmp_path)


@pytest.fixture(scope="module")
def questions(human_eval: Path) -> tuple[RatedQuestion, ...]:
    return read_ratings(human_eval)


def test_every_published_question_is_found(shared: Path, questions: tuple[RatedQuestion, ...]) -> None:
    others = other_references(questions, shared / "data")
    counts = Counter((each.task, len(own)) for each, own in zip(questions, others, strict=True))
    # Of ECQA the four whose gold explanation is another annotation than the release's.
    assert counts == {
        ("ecqa", 0): 1436, ("ecqa", 1): 4,
        ("esnli", 1): 33, ("esnli", 2): 1357,
        ("comve", 1): 13, ("comve", 2): 1417,
    }  # fmt: skip


def test_ecqas_free_flow_text_repeats_the_explanation(
    shared: Path, questions: tuple[RatedQuestion, ...]
) -> None:
    """Why it is no reference: a metric would find the gold explanation in it, word for word."""
    rows = read_table(shared / "data" / "ecqa" / "cqa_data_val.csv", Report(), columns=("q_text", "taskB"))
    free_flow = {same_text(row.values["q_text"]): words(row.values["taskB"]) for row in rows}
    shares = []
    for each in (each for each in questions if each.task == "ecqa"):
        gold = words(each.gold_explanation.text)
        there = free_flow[same_text(each.fields["question"])]
        shares.append(sum(word in there for word in gold) / len(gold))
    assert sum(shares) / len(shares) > 0.9
    assert sum(share == 1 for share in shares) > len(shares) / 2


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())
