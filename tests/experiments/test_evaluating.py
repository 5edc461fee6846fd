from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from caref.errors import CarefError, DataError
from caref.experiments.evaluating import Evaluator, PredictionSet, find_prediction_sets, pooled
from caref.generation.prediction import Prediction, write_predictions
from caref.metrics import METRICS, MetricResult
from caref.results.evaluation import EvaluationFolder


def prediction(id: str, *, right: bool = True, **more: Any) -> Prediction:
    return Prediction(
        id=id, label="yes" if right else "no", explanation="it is", gold_label="yes",
        gold_explanations=("so it is",), **more,
    )  # fmt: skip


def write(path: Path, *right: bool) -> Path:
    write_predictions(path, [prediction(str(number), right=each) for number, each in enumerate(right)])
    return path


def test_a_file_of_another_system(tmp_path: Path) -> None:
    (found,) = find_prediction_sets([write(tmp_path / "theirs.jsonl", True, False)])
    assert (found.name, len(found.predictions), found.run) == ("theirs", 2, None)
    (done,) = Evaluator.make(["accuracy", "broken"]).evaluate([found])
    assert list(done.evaluation.metrics) == ["accuracy", "broken"]
    assert done.evaluation.metrics["accuracy"].values == {"accuracy": 50.0, "n": 2}
    assert done.evaluation.metrics["accuracy"].intervals == {"accuracy": (0.0, 100.0)}
    assert done.evaluation.metrics["accuracy"].columns == ("correct",)
    done.write(tmp_path / "out")
    folder = EvaluationFolder(tmp_path / "out" / "theirs")
    assert folder.read() == done.evaluation
    assert folder.read_scores()["1"] == {"correct": 0.0, "broken": 0.0}


def test_the_hash_is_of_what_is_said(tmp_path: Path) -> None:
    first, copy = write(tmp_path / "a.jsonl", True), write(tmp_path / "b.jsonl", True)
    other = write(tmp_path / "c.jsonl", False)
    hashes = [each.sha256 for each in find_prediction_sets([first, copy, other])]
    assert hashes[0] == hashes[1] != hashes[2]


def test_folders(tmp_path: Path) -> None:
    write(tmp_path / "b.jsonl", True)
    write(tmp_path / "a.jsonl", True)
    assert [each.name for each in find_prediction_sets([tmp_path])] == ["a", "b"]
    with pytest.raises(DataError, match="two sets of predictions are called 'a'"):
        find_prediction_sets([tmp_path, tmp_path / "a.jsonl"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="neither a complete run nor files of predictions"):
        find_prediction_sets([tmp_path / "empty"])
    with pytest.raises(DataError, match="there is no file or folder"):
        find_prediction_sets([tmp_path / "nowhere"])


def test_a_pool_draws_an_example_of_several_splits_once(tmp_path: Path) -> None:
    right = [True, False] * 10
    paths = [write(tmp_path / f"{name}.jsonl", *right) for name in "abcd"]
    sets = find_prediction_sets(paths)
    (alone,) = Evaluator.make(["accuracy"]).evaluate(sets[:1])
    (pool,) = Evaluator.make(["accuracy"]).evaluate(pooled(sets))
    assert (pool.of.name, pool.evaluation.n) == ("pooled (4 files)", 80)
    assert pool.evaluation.metrics["accuracy"].intervals == alone.evaluation.metrics["accuracy"].intervals


def test_what_was_asked_for_and_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_CACHE", "/nonexistent")
    for names, settings in ((["nbert"], {}), (None, {"encoder": "nobody/has-this"})):
        with pytest.raises(CarefError, match="neither a directory nor a model that the hub gives"):
            Evaluator.make(names, settings)
    evaluator = Evaluator.make()
    assert list(evaluator.left_out) == ["nbert"]
    (done,) = evaluator.evaluate([PredictionSet("a", [prediction("1")])])
    record = done.evaluation.metrics["nbert"]
    assert record.values == {"nbert": None}
    assert "hub" in record.notes["nbert"]
    assert set(done.evaluation.metrics) == set(METRICS.names())


class _Together:
    name, direction, range, unit, source = "together", None, (0.0, 1.0), "", ""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def prepare(self, sets: Sequence[Sequence[Prediction]], *, on_progress: Any = None) -> None:
        self.calls.append([len(each) for each in sets])
        on_progress(1, 2)

    def compute(self, predictions: Sequence[Prediction]) -> MetricResult:
        self.calls.append(len(predictions))
        if any(each.id == "bad" for each in predictions):
            raise CarefError("prediction 'bad': no")
        return MetricResult(values={"together": None}, notes={"together": "because"})


def test_common_work_comes_first_and_is_told(tmp_path: Path) -> None:
    metric, told = _Together(), []
    sets = [PredictionSet("a", [prediction("1")]), PredictionSet("b", [prediction("1"), prediction("2")])]
    evaluator = Evaluator([metric])
    evaluator.prepare(sets, on_progress=lambda done, total: told.append((done, total)))
    list(evaluator.evaluate(sets))
    assert metric.calls == [[1, 2], 1, 2]
    assert told == [(1, 2)]


def test_a_set_that_cannot_be_evaluated_is_named() -> None:
    with pytest.raises(CarefError, match=r"^theirs: prediction 'bad': no$"):
        list(Evaluator([_Together()]).evaluate([PredictionSet("theirs", [prediction("bad")])]))


def test_the_written_form_is_json_without_nan(tmp_path: Path) -> None:
    (done,) = Evaluator.make(["accuracy", "calibration_error"]).evaluate(
        [PredictionSet("a", [prediction("1")])]
    )
    done.write(tmp_path)
    record = json.loads((tmp_path / "a" / "evaluation.json").read_text(), parse_constant=pytest.fail)
    assert record["metrics"]["calibration_error"]["values"]["calibration_error"] is None
    assert record["metrics"]["calibration_error"]["notes"]["calibration_error"]
