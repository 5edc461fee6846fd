from __future__ import annotations

from caref.experiments.flat import spec_from_flat
from caref.experiments.resources import Resources

Generated = list[tuple[str, int]]


def test_equal_settings_share_what_is_generated(parity: Generated) -> None:
    resources = Resources()
    plain = spec_from_flat({"task": "parity", "model": "m"})
    same = spec_from_flat({"task": "parity", "model": "other", "size": 40, "objective": "ce"})
    assert resources.task(plain) is resources.task(same)
    assert resources.pool(plain, "train") is resources.pool(same, "train")
    assert parity == [("train", 40)]
    other = spec_from_flat({"task": "parity", "model": "m", "size": 6})
    assert resources.task(other) is not resources.task(plain)
    assert len(resources.pool(other, "train")) == 6
    assert parity == [("train", 40), ("train", 6)]
