from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from caref.generation.prediction import Prediction
from caref.human.association import ALL, MEAN_OF_SYSTEMS, MEAN_OF_TASKS
from caref.human.plausibility import question_means
from caref.human.ratings import RatedExplanation, RatedQuestion, read_ratings
from caref.human.validation import Validation, validate
from caref.metrics import METRICS
from caref.metrics.result import MetricResult


class Counted:
    """Words of an explanation, and those that it shares with a reference."""

    name = "counted"
    direction = None
    range = (0.0, 100.0)
    unit = "words"
    source = "a test"

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        columns: dict[str, list[float | None]] = {
            "words": [float(len(each.explanation.split())) for each in predictions],
            "shared": [float(max(map(len, _shared(each)))) for each in predictions],
            "odd": [float(each.id.endswith("/base/0")) * len(each.explanation) for each in predictions],
        }
        return MetricResult(values={"n": len(predictions)}, per_example=columns)


def _shared(prediction: Prediction) -> list[set[str]]:
    own = set(prediction.explanation.split())
    return [own & set(text.split()) for text in prediction.gold_explanations]


@pytest.fixture
def questions(make_question: Callable[..., RatedQuestion]) -> list[RatedQuestion]:
    generator = np.random.default_rng(0)
    made = []
    for system in ("base", "large"):
        for number in range(40):
            ratings = generator.integers(0, 4, size=3).tolist()
            text = " ".join(
                ["dog", *["is", "an", "animal", "Every"][: sum(ratings) // 2], *["x"] * (number % 3)]
            )
            each = make_question(number, system=system, generated=ratings, text=text)
            gold = RatedExplanation("Every dog is an animal" + " too" * (number % 4), (3, 3, 2))
            made.append(replace(each, gold_explanation=gold))
    return made


def test_correlations_are_those_of_the_columns(questions: list[RatedQuestion]) -> None:
    found = validate(questions, [Counted()], draws=20)
    words, shared = found.metrics
    rating = question_means([each.generated_explanation.ratings for each in questions])
    lengths = [len(each.generated_explanation.text.split()) for each in questions]
    assert (words.name, words.needs_reference, shared.needs_reference) == ("words", False, True)
    whole = words.spearman["esnli"]
    assert whole.value == pytest.approx(stats.spearmanr(lengths, rating).statistic)
    assert words.kendall["esnli"].value == pytest.approx(stats.kendalltau(lengths, rating).statistic)
    halves = [stats.spearmanr(lengths[a:b], rating[a:b]).statistic for a, b in ((0, 40), (40, 80))]
    assert words.spearman["esnli/base"].value == pytest.approx(halves[0])
    assert words.spearman[MEAN_OF_SYSTEMS].value == pytest.approx(sum(halves) / 2)
    assert words.spearman[ALL].value == words.spearman[MEAN_OF_TASKS].value == whole.value
    assert whole.interval is not None and whole.interval[0] < whole.value < whole.interval[1]
    assert (whole.n, words.spearman["esnli/base"].n) == (80, 40)
    assert (found.n, found.n_questions) == (80, 40)


def test_one_rater_against_the_others(questions: list[RatedQuestion]) -> None:
    found = validate(questions, [Counted()], draws=0).one_rater
    ratings = np.array([each.generated_explanation.ratings for each in questions])
    each = [
        stats.spearmanr(ratings[:, k], np.delete(ratings, k, axis=1).mean(axis=1)).statistic for k in range(3)
    ]
    assert found.spearman["esnli"].value == pytest.approx(np.mean(each))
    gold = np.array([each.gold_explanation.ratings for each in questions])
    areas = [
        stats.mannwhitneyu(gold[:, k], ratings[:, k], method="asymptotic").statistic / 80**2 for k in range(3)
    ]
    assert found.auc["esnli"].value == pytest.approx(np.mean(areas))


def test_auc_without_the_data_is_undefined_where_references_are_needed(
    questions: list[RatedQuestion],
) -> None:
    words, shared = validate(questions, [Counted()], draws=0).metrics
    gold = [len(each.gold_explanation.text.split()) for each in questions]
    generated = [len(each.generated_explanation.text.split()) for each in questions]
    area = stats.mannwhitneyu(gold, generated, method="asymptotic").statistic / 80**2
    assert words.auc["esnli"].value == words.auc[MEAN_OF_TASKS].value == pytest.approx(area)
    assert shared.auc["esnli"].value is None
    assert shared.auc["esnli"].note is not None
    assert shared.auc["esnli"].note.endswith("the data sets were not given")


def test_auc_is_of_the_questions_that_have_another_reference(
    questions: list[RatedQuestion], tmp_path: Path
) -> None:
    (tmp_path / "las").mkdir()
    lines = ["unique_key\tlabel\tpremise\thypothesis\texplanation1\texplanation2\texplanation3"]
    for number in range(20):
        lines.append(f"{number}\t1\tA dog runs {number} times .\tAn animal runs .\tdog is\tan\tanimal")
    (tmp_path / "las" / "dev.tsv").write_text("\n".join(lines) + "\n")
    found = validate(questions, [Counted()], data=tmp_path, draws=0)
    words, shared = found.metrics
    assert (words.auc["esnli"].n, shared.auc["esnli"].n) == (80, 40)
    here = [each for each in questions if int(each.id) < 20]
    gold = [2.0] * 40  # "dog is"
    generated = [
        float(
            max(len(set(text.split()) & set(each.generated_explanation.text.split())) for text in REFERENCES)
        )
        for each in here
    ]
    area = stats.mannwhitneyu(gold, generated, method="asymptotic").statistic / 40**2
    assert shared.auc["esnli"].value == pytest.approx(area)

    few = validate([each for each in questions if int(each.id) >= 10], [Counted()], data=tmp_path, draws=0)
    note = few.metrics[1].auc["esnli"].note
    assert note == "only 20 questions have a reference that was not shown; at least 30 are needed"


REFERENCES = ("dog is", "an", "animal")


def test_a_number_that_is_odd_only_now_and_then_is_left_out(questions: list[RatedQuestion]) -> None:
    found = validate(questions, [Counted()], left_out={"nbert": "no encoder"}, draws=0)
    assert [each.name for each in found.metrics] == ["words", "shared"]
    assert found.left_out == {
        "nbert": "no encoder",
        "odd": "fewer than 10 explanations have another number than the commonest",
    }
    assert found.differences is None


def test_the_order_of_questions_does_not_matter(questions: list[RatedQuestion]) -> None:
    first = validate(questions, [Counted()], draws=0)
    second = validate(questions[::-1], [Counted()], draws=0)
    for one, other in zip(first.metrics, second.metrics, strict=True):
        for scope, estimate in one.spearman.items():
            assert other.spearman[scope].value == pytest.approx(estimate.value)


def test_the_same_again_gives_the_same(questions: list[RatedQuestion]) -> None:
    assert validate(questions, [Counted()], draws=5) == validate(questions, [Counted()], draws=5)


def test_plain_data(questions: list[RatedQuestion]) -> None:
    record = json.loads(json.dumps(validate(questions, [Counted()], draws=5).as_json(), allow_nan=False))
    assert record["n_questions"] == 40
    assert record["rated"][0]["explanations"] == "gold"
    assert record["rated"][0]["right_answers"] == pytest.approx(2 / 3)


def test_no_question() -> None:
    with pytest.raises(ValueError, match="no rated question"):
        validate([], [Counted()])


@pytest.fixture(scope="module")
def published(shared: Path, human_eval: Path) -> Validation:
    metrics = [METRICS.get(name)() for name in ("accuracy", "rouge_l", "explanation_length")]
    return validate(read_ratings(human_eval), metrics, data=shared / "data", draws=3)


@pytest.mark.slow
def test_what_was_published(published: Validation) -> None:
    assert (published.n, published.n_questions) == (4260, 1466)
    assert list(published.auc_tasks) == ["esnli", "comve"]
    rouge, length = published.metrics
    assert (rouge.name, length.name) == ("rouge_l", "explanation_length")
    assert [rouge.auc[task].n for task in ("ecqa", "esnli", "comve")] == [4, 1390, 1430]
    assert rouge.auc["ecqa"].value is None
    # Far below what one person says of what the others will say.
    for scope in ("ecqa", "esnli", "comve"):
        for each in published.metrics:
            correlation, ceiling = each.spearman[scope].value, published.one_rater.spearman[scope].value
            assert correlation is not None and ceiling is not None
            assert 0 < correlation < ceiling - 0.1
