from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest
from scipy import stats

from caref.errors import DataError
from caref.results.published import AVERAGE, PublishedNumber, PublishedTable, paper_table, read_published
from caref.results.published.consistency import inconsistencies, published_factors
from caref.results.published.survival import Survival, moments, survivals

HEAD = "block,model,task,value,mean,std,n,bold\n"


def table(*rows: str) -> PublishedTable:
    """Rows as a file has them, in one block with 60 splits: model, task, value, mean, std, bold."""
    numbers = []
    for row in rows:
        model, task, value, mean, std, bold = row.split()
        numbers.append(
            PublishedNumber.model_validate(
                {
                    "block": "B", "model": model, "task": task, "value": value, "mean": mean,
                    "std": "" if std == "-" else std, "n": 60, "bold": bold,
                }
            )
        )  # fmt: skip
    return PublishedTable("made up", tuple(numbers))


def found(of: PublishedTable) -> dict[tuple[str, str, str, str], Survival]:
    return {
        (each.bold.block, each.bold.model, each.bold.task, each.bold.value): each for each in survivals(of)
    }


def test_the_papers_numbers_are_those_of_the_release(shared: Path) -> None:
    path = shared / "paper" / "table1.csv"
    if not path.is_file():
        pytest.skip("the paper's table is not among the shared data")
    ours = {
        (each.block.split()[0], each.model, each.value, each.task): each for each in paper_table().numbers
    }
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        number = ours.pop((row["section"], row["model"], row["metric"], row["dataset"]))
        assert (number.mean, number.std, number.n) == (float(row["mean"]), float(row["std"]), 60)
        average = next(
            each
            for each in paper_table().numbers
            if (each.block, each.model, each.value, each.task)
            == (number.block, number.model, number.value, AVERAGE)
        )
        assert average.mean == float(row["reported_average"])
    assert {key[-1] for key in ours} == {AVERAGE}


def test_a_bold_number_is_held_against_the_best_other() -> None:
    of = table("a x accuracy 80 1 0", "b x accuracy 82 1 1", "c x accuracy 81 1 0")
    (each,) = survivals(of)
    assert (each.rival.model, each.others, each.verdict) == ("c", 2, "survives")
    theirs = stats.ttest_ind_from_stats(82, 1, 60, 81, 1, 60, equal_var=False)
    assert each.test is not None
    assert (each.test.difference, each.test.p_value) == (1.0, pytest.approx(theirs.pvalue))
    # The other competitor is farther away: Holm multiplies its p by 2 and leaves the rival's.
    assert each.p_holm == pytest.approx(theirs.pvalue)
    near, far = (
        stats.ttest_ind_from_stats(82, 60**0.5, 60, mean, 60**0.5, 60, equal_var=False).pvalue
        for mean in (81, 80)
    )
    assert each.p_holm_as_errors == pytest.approx(max(2 * far, near))
    assert each.verdict_as_errors == "not distinguishable"


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        (("a x accuracy 82.1 1 0", "b x accuracy 82 1 1"), "not the largest"),
        (("a x accuracy 81.9 1 0", "b x accuracy 82 1 1"), "not distinguishable"),
        (("a x accuracy 82 1 0", "b x accuracy 82 1 1"), "not distinguishable"),
        (("a x accuracy 80 - 0", "b x accuracy 82 1 1"), "undefined: no deviation"),
        (("a x accuracy 80 0 0", "b x accuracy 82 0 1"), "undefined: no deviation"),
        (("a x accuracy 80 1 0", "b x accuracy 82 1 1"), "survives"),
    ],
)
def test_verdicts(rows: tuple[str, ...], verdict: str) -> None:
    (each,) = survivals(table(*rows))
    assert each.verdict == verdict


def test_a_number_without_a_rival_is_left_out() -> None:
    assert survivals(table("a x accuracy 80 1 1", "a y accuracy 80 1 1")) == []


def test_an_average_has_the_deviation_that_its_tasks_give() -> None:
    of = table("a x accuracy 80 3 0", "a y accuracy 90 4 0", "a average accuracy 85 - 0")
    average = of.numbers[2]
    found = moments(of, average)
    assert found is not None
    assert (found.mean, found.std, found.n) == (85.0, 2.5, 60)
    as_errors = moments(of, average, as_errors=True)
    assert as_errors is not None
    assert as_errors.std == pytest.approx(2.5 * math.sqrt(60))
    assert moments(table("a x accuracy 80 - 0", "a average accuracy 80 - 0"), average) is None


def test_a_difference_in_nbert_comes_with_its_parts() -> None:
    rows = ["a x accuracy 80 1 0", "a x nbert 72 1 0", "b x accuracy 90 1 0", "b x nbert 72.9 1 1"]
    (each,) = survivals(table(*rows))
    assert each.parts is not None
    accuracy, explanation = each.parts.accuracy_part.value, each.parts.explanation_part.value
    # F1 given right 0.9 and 0.81: 10 * 0.855 and -0.09 * 85.
    assert (accuracy, explanation) == (pytest.approx(8.55), pytest.approx(-7.65))
    rows += ["a y accuracy 0 1 0", "a y nbert 0 1 0", "b y accuracy 50 1 0", "b y nbert 45 1 0"]
    rows += ["a average nbert 36 - 0", "b average nbert 58.95 - 1"]
    average = found(table(*rows))["B", "b", "average", "nbert"]
    assert average.parts is not None
    assert average.parts.difference == pytest.approx(22.95)
    assert average.parts.accuracy_part.value is None
    (alone,) = survivals(table("a x nbert 72 1 0", "b x nbert 72.9 1 1"))
    assert alone.parts is None


def test_the_parts_of_the_papers_averages_are_their_difference() -> None:
    for each in survivals(paper_table()):
        if each.parts is not None:
            accuracy, explanation = each.parts.accuracy_part.value, each.parts.explanation_part.value
            assert accuracy is not None and explanation is not None
            assert accuracy + explanation == pytest.approx(each.parts.difference, abs=1e-12)
            # The averages are rounded.
            assert each.parts.difference == pytest.approx(each.bold.mean - each.rival.mean, abs=0.011)


def test_what_the_paper_sets_in_bold() -> None:
    of = found(paper_table())
    assert len(of) == 31
    # By hand: 0.17 apart, deviations 1.80 and 1.84, errors of 0.23 and 0.24: t = 0.51.
    assert of["RQ1", "CAREF-AQ", "esnli", "nbert"].verdict == "not distinguishable"
    # By hand: 1.47 apart, errors of 0.11 and 0.10: t = 9.9.
    assert of["RQ2 AQ", "CAREF-AQ (w/)", "comve", "nbert"].verdict == "survives"
    assert {key for key, each in of.items() if each.verdict == "not the largest"} == {
        ("RQ1", "CAREF-AQ", "comve", "nbert"),
        ("RQ3", "CAREF-AQ", "cos_e", "nbert"),
        ("RQ3", "CAREF-AQ", "comve", "nbert"),
    }


def test_what_does_not_fit_together_is_told() -> None:
    of = table(
        "a x accuracy 80 1 1", "b x accuracy 82 1 0", "a y accuracy 70 1 0", "b y accuracy 60 1 0",
        "a average accuracy 75.2 - 1", "b average accuracy 71 - 0", "a x nbert 81 1 1", "b x nbert 70 1 0",
    )  # fmt: skip
    assert inconsistencies(of) == [
        "B, x, accuracy: a 80.00 is bold; the largest: b 82.00",
        "B, y, accuracy: no number is bold; the largest: a 70.00",
        "B, a, accuracy: the average is given as 75.20; the mean of its tasks is 75.00",
        "B, a, x: an nBERT of 81.00 is more than an accuracy of 80.00 allows",
    ]


def test_a_number_that_is_given_twice_is_told() -> None:
    first = table("a x accuracy 80 1 1", "b x accuracy 79 1 0").numbers
    again = [
        each.model_copy(update={"block": "C", "mean": each.mean + (each.model == "b")}) for each in first
    ]
    told = inconsistencies(PublishedTable("made up", (*first, *again)))
    assert told == ["b, x, accuracy: 79.00 in B, 80.00 in C"]


def test_factors() -> None:
    of = table("a x accuracy 80 1 0", "a x nbert 72 1 0", "b x accuracy 0 1 0", "b x nbert 0 1 0")
    assert [f1 for _, f1, _ in published_factors(of)] == [pytest.approx(90.0), None]
    assert list(published_factors(table("a x accuracy 80 1 0"))) == []


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(
        HEAD + "1,ours,x,accuracy,80.5,,60,1\n1,theirs,x,accuracy,80,1.5,60,0\n", encoding="utf-8"
    )
    of = read_published(path)
    assert (of.name, [each.std for each in of.numbers]) == ("own.csv", [None, 1.5])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", r"own\.csv: expected the columns block, .*, bold, got none"),
        ("block,mean\n", r"own\.csv: expected the columns block, .*, bold, got block, mean"),
        (HEAD, r"own\.csv holds no number"),
        (HEAD + "1,a,x,accuracy,high,1,60,1\n", r"own\.csv:2: mean: Input should be a valid number"),
        (HEAD + "1,a,x,accuracy,nan,1,60,1\n", r"own\.csv:2: mean: Input should be a finite number"),
        (
            HEAD + "1,a,x,accuracy,80,-1,60,1\n",
            r"own\.csv:2: std: Input should be greater than or equal to 0",
        ),
        (HEAD + "1,a,x,accuracy,80,1,1,1\n", r"own\.csv:2: n: Input should be greater than or equal to 2"),
        (HEAD + "1,a,x,accuracy,80,1,60\n", r"own\.csv:2: bold: Input should be a valid boolean"),
        (
            HEAD + "1,a,x,accuracy,80,1,60,1\n" * 2,
            r"own\.csv:3: a number for 1, a, x, accuracy is there twice",
        ),
    ],
)
def test_what_is_no_table(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "own.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=told):
        read_published(path)
    with pytest.raises(DataError, match="cannot read"):
        read_published(tmp_path / "nowhere.csv")
