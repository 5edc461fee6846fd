"""The hub's copies, with the download replaced by rows in memory."""

from __future__ import annotations

from typing import Any

import datasets
import pytest

from caref.errors import CarefError, DataError
from caref.tasks import TASKS, get_task

QUESTION = {
    "q_no": "id1",
    "q_text": "What is wet?",
    "q_ans": "rain",
    "taskA_pos": "Rain is water\nWater is wet.",
}
ROWS: dict[str, list[dict[str, Any]]] = {
    "cos_e": [
        {
            "id": "id1",
            "question": "What is wet?",
            "choices": ["rain", "sand", "fire"],
            "answer": "rain",
            "abstractive_explanation": "rain is water",
            "extractive_explanation": "wet",
        }
    ],
    "ecqa": [
        {**QUESTION, **{f"q_op{n}": text for n, text in enumerate(("rain", "sun", "sand", "fire", "air"), 1)}}
    ],
    "esnli": [
        {
            "premise": "P",
            "hypothesis": "H",
            "label": 1,
            "explanation_1": "one",
            "explanation_2": "",
            "explanation_3": "three",
        }
    ],
}
ROWS["cos_e_v1.11"] = ROWS["cos_e"]
WITH_HUB = [name for name in TASKS if get_task(name).hub is not None]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Replaces the download; collects what was asked for."""
    calls: list[tuple[Any, ...]] = []

    def load_dataset(path: str, name: str | None, *, split: str, revision: str | None) -> datasets.Dataset:
        calls.append((path, name, split))
        return datasets.Dataset.from_list(
            next(
                ROWS[key]
                for key in WITH_HUB
                if (hub := get_task(key).hub) and (hub.path, hub.name) == (path, name)
            )
        )

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return calls


@pytest.mark.parametrize("name", WITH_HUB)
def test_columns_become_examples(name: str, asked: list[tuple[Any, ...]]) -> None:
    task = get_task(name)
    for part in task.parts:
        pool = task.load(None, part)
        assert len(pool) == 1
        assert task.hub is not None and pool.data_format == f"hub:{task.hub.path}"
        assert pool.files == ()
        assert task.prompts["feb"].render(pool.examples[0]).target.count(" because ") == 1
    assert {call[:2] for call in asked} == {(task.hub.path, task.hub.name)}


def test_values(asked: list[tuple[Any, ...]]) -> None:
    (example,) = get_task("esnli").load(None, "validation")
    assert (example.answer, example.explanations) == ("neutral", ("one", "three"))
    (example,) = get_task("ecqa").load(None, "train")
    assert (example.id, example.answer, example.explanations) == (
        "id1",
        "rain",
        ("Rain is water. Water is wet.",),
    )


def test_bad_rows_are_numbered(asked: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    good = ROWS["esnli"][0]
    monkeypatch.setitem(ROWS, "esnli", [good, {**good, "label": -1}])
    with pytest.raises(DataError, match=r"hub:esnli/esnli/train:2: unknown label '-1'"):
        get_task("esnli").load(None, "train")


def test_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(*args: object, **options: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(DataError) as raised:
        get_task("cos_e").load(None, "train")
    assert "cannot read Salesforce/cos_e from the hub (ConnectionError: no route)" in str(raised.value)
    assert "https://github.com/salesforce/cos-e" in str(raised.value)


def test_without_a_copy_and_with_a_format() -> None:
    with pytest.raises(DataError, match="no copy of comve on the hub is known; pass the folder"):
        get_task("comve").load(None, "train")
    with pytest.raises(CarefError, match="pass their folder as data too"):
        get_task("esnli").load(None, "train", data_format="ukplab")


@pytest.mark.network
@pytest.mark.parametrize("name", WITH_HUB)
def test_the_real_copies(name: str) -> None:
    assert len(get_task(name).load(None, "validation")) > 900
