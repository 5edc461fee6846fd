from __future__ import annotations

from caref.protocol.seeds import FEB_SEEDS
from caref.quickstart.plan import BEFORE, CAREF, CE, MODEL, SETTINGS, TASKS, planned_runs


def test_every_role_is_run_on_the_same_tasks_and_splits() -> None:
    runs = planned_runs((0, 2))
    assert list(runs) == [BEFORE, CE, CAREF]
    where = [(task, FEB_SEEDS[split]) for task in TASKS for split in (0, 2)]
    assert all([(spec.task, spec.seed) for spec in specs] == where for specs in runs.values())


def test_roles_differ_in_what_they_are_about_and_nothing_else() -> None:
    before, ce, caref = (specs[0] for specs in planned_runs((0,)).values())
    assert (before.training.epochs, ce.training.epochs) == (0, SETTINGS["epochs"])
    assert (ce.objective, caref.objective) == ("ce", "caref")
    own = {"objective", "objective_settings"}
    assert ce.model_dump(exclude=own) == caref.model_dump(exclude=own)
    epochs = {"training": {"epochs"}}
    assert before.model_dump(exclude=epochs) == ce.model_dump(exclude=epochs)


def test_nothing_comes_from_a_network() -> None:
    specs = [spec for specs in planned_runs((0,)).values() for spec in specs]
    assert {spec.model for spec in specs} == {MODEL} == {"starter"}
    assert {spec.metric_settings["encoder"] for spec in specs} == {"offline"}
    assert all(spec.data is None and not spec.file_hashes for spec in specs)


def test_changes() -> None:
    runs = planned_runs((0,), method="lora", metrics=("accuracy",), encoder=None)
    assert {spec.method for specs in runs.values() for spec in specs} == {"lora"}
    assert runs[CE][0].metric_settings == {}
    assert [specs[0].training.epochs for specs in planned_runs((0,), epochs=5).values()] == [0, 5, 5]
