from __future__ import annotations

from collections.abc import Callable

import pytest

from caref.results.result import MetricRecord, RunResult
from caref.results.table import COLUMNS, GROUP, Cell, aggregate, as_records

Make = Callable[..., RunResult]


def test_mean_and_sample_deviation_over_seeds(make_result: Make) -> None:
    runs = [make_result(seed=seed, values={"accuracy": value}) for seed, value in ((1, 10.0), (2, 20.0))]
    (row,) = aggregate((run, "s") for run in runs)
    assert row.splits == 2
    assert row.cells["accuracy"] == Cell(mean=15.0, std=pytest.approx(7.0710678), n=2)


def test_one_split_has_no_deviation(make_result: Make) -> None:
    (row,) = aggregate([(make_result(), "s")])
    assert row.cells == {"accuracy": Cell(50.0, None, 1)}


def test_undefined_values_are_left_out_and_counted(make_result: Make) -> None:
    values: list[float | None] = [None, 1.0, 3.0]
    runs = [make_result(seed=seed, values={"nbert": value}) for seed, value in enumerate(values)]
    (row,) = aggregate((run, "s") for run in runs)
    assert row.splits == 3
    assert row.cells["nbert"] == Cell(2.0, pytest.approx(2**0.5), 2)
    (row,) = aggregate([(runs[0], "s")])
    assert row.cells["nbert"] == Cell(None, None, 0)


@pytest.mark.parametrize("name", [name for name in GROUP if name != "setting"])
def test_whatever_differs_but_the_seed_is_a_row_of_its_own(make_result: Make, name: str) -> None:
    rows = aggregate([(make_result(), "s"), (make_result(**{name: "zz"}), "t"), (make_result(seed=2), "s")])
    assert [(row.group[name], row.splits) for row in rows][-1] == ("zz", 1)
    assert [row.splits for row in rows] == [2, 1]
    assert {row.group["setting"] for row in rows} == {""}


def test_settings_of_the_same_name_are_told_apart(make_result: Make) -> None:
    runs = [(make_result(seed=1), "aaa"), (make_result(seed=2), "aaa"), (make_result(seed=1), "bbb")]
    rows = aggregate([*runs, (make_result(method="lora"), "ccc")])
    assert [(row.group["method"], row.group["setting"], row.splits) for row in rows] == [
        ("aq", "aaa", 2),
        ("aq", "bbb", 1),
        ("lora", "", 1),
    ]
    assert rows == aggregate([(make_result(method="lora"), "ccc"), *reversed(runs)])


def test_columns(make_result: Make) -> None:
    run = make_result(values={"broken": 1.0, "other": 2.0, "accuracy": 3.0})
    assert list(aggregate([(run, "s")])[0].cells) == [
        name for name in COLUMNS if name in ("accuracy", "broken")
    ]
    assert list(aggregate([(run, "s")], ["other"])[0].cells) == ["other"]
    (row,) = aggregate([(run, "s")], ["not computed"])
    assert row.cells["not computed"] == Cell(None, None, 0)
    assert aggregate([]) == []


def with_encoder(run: RunResult, **fingerprint: str) -> RunResult:
    record = MetricRecord(values={"nbert": 1.0}, fingerprint=dict(fingerprint))
    return run.model_copy(update={"metrics": {**run.metrics, "nbert": record}})


def test_encoders_are_named(make_result: Make) -> None:
    runs = [with_encoder(make_result(seed=seed), encoder="roberta-large") for seed in (1, 2)]
    (row,) = aggregate((run, "s") for run in runs)
    assert (row.encoder, row.warnings) == ("roberta-large", ())
    runs[1] = with_encoder(runs[1], encoder="offline")
    (row,) = aggregate((run, "s") for run in runs)
    assert row.encoder == "offline, roberta-large"
    assert row.warnings == ("nbert was not computed in the same way in all runs; see result.json",)
    assert aggregate([(make_result(), "s")])[0].encoder == ""


def test_what_was_cut_or_skipped_is_a_warning(make_result: Make) -> None:
    cut = make_result(inputs_cut=3, targets_cut=2, problems_skipped=5)
    (row,) = aggregate([(cut, "s"), (make_result(seed=2, data_format="ukplab"), "s")])
    assert row.warnings == (
        "3 of 796 inputs lost the end of their context (--max-input-tokens)",
        "2 of 96 training targets lost the end of their explanation (--max-target-tokens)",
        "5 unreadable rows of the data were skipped (--skip-bad-rows)",
        "the runs read different data formats",
    )


def test_records_are_flat(make_result: Make) -> None:
    (record,) = as_records(aggregate([(with_encoder(make_result(), encoder="e"), "s")], ["accuracy"]))
    assert record == {
        "task": "esnli",
        "model": "tiny",
        "method": "aq",
        "objective": "caref",
        "supervision": "answer_and_explanation",
        "prompt": "feb",
        "setting": "",
        "splits": 1,
        "accuracy_mean": 50.0,
        "accuracy_std": None,
        "accuracy_n": 1,
        "encoder": "e",
        "warnings": "",
    }


def test_a_value_by_its_name(make_result: Make) -> None:
    run = make_result(values={"accuracy": None, "broken": 2.0})
    assert run.value_names == ["accuracy", "broken"]
    assert (run.value("accuracy"), run.value("broken")) == (None, 2.0)
    with pytest.raises(KeyError):
        run.value("nbert")
