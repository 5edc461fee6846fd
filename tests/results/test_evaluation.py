from __future__ import annotations

import json
from pathlib import Path

import pytest

from caref.errors import CarefError, DataError
from caref.results.evaluation import Evaluation, EvaluationFolder
from caref.results.result import MetricRecord

EVALUATION = Evaluation(
    name="ours",
    predictions_sha256="0" * 64,
    n=2,
    metrics={"accuracy": MetricRecord(values={"accuracy": 50.0}, intervals={"accuracy": (0.0, 100.0)})},
)


def written(path: Path) -> EvaluationFolder:
    folder = EvaluationFolder(path)
    folder.write(EVALUATION, ["a", "\u2028"], {"correct": [1.0, None]})
    return folder


def test_what_was_written_is_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "deep" / "ours")
    assert folder.read() == EVALUATION
    assert folder.read_scores() == {"a": {"correct": 1.0}, "\u2028": {"correct": None}}


def test_an_unfinished_one_is_not_read(tmp_path: Path) -> None:
    folder = written(tmp_path)
    folder.evaluation_path.unlink()
    for read in (folder.read, folder.read_scores):
        with pytest.raises(DataError, match=r"evaluation\.json is missing"):
            read()


def test_writing_again_begins_by_undoing_completion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path)

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("caref.results.evaluation.write_scores", fails)
    with pytest.raises(CarefError, match="No space left"):
        folder.write(EVALUATION, ["a"], {})
    assert not folder.is_complete


def test_another_file_of_that_name_is_told(tmp_path: Path) -> None:
    folder = written(tmp_path)
    record = json.loads(folder.evaluation_path.read_text())
    folder.evaluation_path.write_text(json.dumps({**record, "n": "many"}))
    with pytest.raises(DataError, match=r"evaluation\.json: not an evaluation: n: "):
        folder.read()
    folder.evaluation_path.write_bytes(b"\xff")
    with pytest.raises(DataError, match="cannot read"):
        folder.read()
