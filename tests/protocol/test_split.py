from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caref.errors import CarefError, DataError
from caref.protocol import FEB_SEEDS, Split, draw_split
from caref.tasks import TASKS, get_task
from caref.tasks.example import Example

LABELS = ("a", "b", "c")
FROM_FILES = [name for name in TASKS if get_task(name).generate is None]


def pool(part: str, count: int) -> list[Example]:
    return [
        Example(f"{part}{n}", {"question": f"{part} question {n}"}, LABELS, LABELS[n % 3], ("why",))
        for n in range(count)
    ]


TRAIN, VALIDATION = pool("t", 300), pool("v", 400)


@given(st.integers(), st.integers(1, 30), st.integers(3, 300), st.randoms(use_true_random=False))
def test_balanced_disjoint_and_the_same_in_any_order(
    seed: int, shots: int, eval_size: int, order: random.Random
) -> None:
    split = draw_split("x", LABELS, TRAIN, VALIDATION, seed=seed, shots=3 * shots, eval_size=eval_size)
    assert Counter(example.answer for example in split.train) == dict.fromkeys(LABELS, shots)
    assert Counter(example.answer for example in split.validation) == dict.fromkeys(LABELS, eval_size // 3)
    assert len({example.id for example in split.train}) == 3 * shots
    shuffled = [order.sample(each, len(each)) for each in (TRAIN, VALIDATION)]
    assert draw_split("x", LABELS, *shuffled, seed=seed, shots=3 * shots, eval_size=eval_size) == split


@given(st.integers(), st.integers(1, 20), st.integers(1, 20))
def test_fewer_shots_are_among_more(seed: int, fewer: int, extra: int) -> None:
    few, many = (
        draw_split("x", LABELS, TRAIN, VALIDATION, seed=seed, shots=3 * shots)
        for shots in (fewer, fewer + extra)
    )
    assert {example.id for example in few.train} <= {example.id for example in many.train}
    assert few.validation == many.validation


@given(st.integers(), st.integers(1, 40))
def test_one_pool_for_both_parts_never_overlaps(seed: int, shots: int) -> None:
    split = draw_split("x", (), TRAIN, TRAIN, seed=seed, shots=shots, eval_size=200)
    assert len(split.train) == shots and len(split.validation) == 200
    assert {example.id for example in split.train}.isdisjoint(example.id for example in split.validation)


def test_what_is_asked_counts_not_the_id() -> None:
    train = pool("t", 3)
    renamed = [replace(example, id=f"other{n}", explanations=("else",)) for n, example in enumerate(train)]
    with pytest.raises(DataError, match="there are none to draw"):
        draw_split("x", LABELS, train, renamed, seed=0, shots=3, eval_size=3)
    same_ids = [replace(example, id=train[n].id) for n, example in enumerate(pool("v", 3))]
    assert len(draw_split("x", LABELS, train, same_ids, seed=0, shots=3, eval_size=3).validation) == 3


def test_labels_are_mixed_and_seeds_differ() -> None:
    splits = [draw_split("x", LABELS, TRAIN, VALIDATION, seed=seed) for seed in FEB_SEEDS[:5]]
    assert len({split.checksum for split in splits}) == 5
    answers = [example.answer for example in splits[0].train]
    assert answers != sorted(answers)
    assert len(splits[0].train) == 48 and len(splits[0].validation) == 348


def test_checksum_is_of_the_ids_in_order() -> None:
    one, two = TRAIN[:2]
    assert Split("x", 1, (one, two), ()).checksum != Split("x", 1, (two, one), ()).checksum
    assert Split("x", 1, (one,), (two,)).checksum != Split("x", 1, (one, two), ()).checksum


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"shots": 50}, "shots must be a positive multiple of 3, the number of labels, got 50; try 48 or 51"),
        ({"shots": 0}, "got 0; try 3"),
        ({"eval_size": 2}, "eval_size must be at least 3, got 2"),
    ],
)
def test_sizes_that_do_not_fit(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(CarefError) as raised:
        draw_split("x", LABELS, TRAIN, VALIDATION, seed=0, **sizes)
    assert message in str(raised.value)


def test_too_few_rows_of_a_label() -> None:
    short = [example for example in TRAIN if example.answer != "b"] + pool("t", 20)[1::3]
    with pytest.raises(DataError) as raised:
        draw_split("x", LABELS, short, VALIDATION, seed=0)
    assert str(raised.value) == (
        "train: 16 examples with label 'b' are to be drawn, 7 are there; pass shots=21 or less"
    )
    assert len(draw_split("x", LABELS, short, VALIDATION, seed=0, shots=21).train) == 21


@pytest.mark.parametrize("name", FROM_FILES)
def test_samples_are_pinned(name: str, samples: Path) -> None:
    task = get_task(name)
    parts = (task.load(samples, "train"), task.load(samples, "validation"))
    shots, eval_size = (2 * len(task.labels), 2 * len(task.labels)) if task.labels else (2, 1)
    drawn = [
        draw_split(name, task.labels, *parts, seed=seed, shots=shots, eval_size=eval_size).checksum[:16]
        for seed in FEB_SEEDS[:3]
    ]
    assert drawn == SAMPLES[name]


@pytest.mark.parametrize("name", FROM_FILES)
def test_real_data_is_pinned(name: str, shared: Path) -> None:
    task = get_task(name)
    parts = (task.load(shared / "data", "train"), task.load(shared / "data", "validation"))
    drawn = [draw_split(name, task.labels, *parts, seed=seed).checksum[:16] for seed in FEB_SEEDS[:3]]
    assert drawn == REAL[name]


def test_real_draws_keep_what_feb_keeps(shared: Path) -> None:
    """ECQA's lists share 7 ids: the draw keeps training and evaluation apart, as FEB does not."""
    task = get_task("ecqa")
    train, validation = task.load(shared / "data", "train"), task.load(shared / "data", "validation")
    assert len({example.id for example in train} & {example.id for example in validation}) == 7
    for seed in FEB_SEEDS:
        split = draw_split("ecqa", (), train, validation, seed=seed)
        assert {example.id for example in split.train}.isdisjoint(example.id for example in split.validation)


SAMPLES = {
    "esnli": ["2aabbe6ce6a82de8", "8613301b8070b2e7", "9c3bb0e1c6c49603"],
    "ecqa": ["4795e8b5af5e61aa", "250ab3c09a62d256", "3ef8fb2ff330495b"],
    "comve": ["7069e1fbae35f902", "97992f1d9b1eb2d0", "9110f6de51075b83"],
    "cos_e": ["4a7e22d948e2cad8", "540d77d75d5e2802", "530264f834bbadf6"],
    "cos_e_v1.11": ["4a7e22d948e2cad8", "540d77d75d5e2802", "530264f834bbadf6"],
}

REAL = {
    "esnli": ["c1ca51453f56e093", "925a73400dfe6b4b", "abfb928f20f9eb4b"],
    "ecqa": ["ef1247c179d70526", "d7782a7664b59c20", "d10c5f33d807111c"],
    "comve": ["a998100eae9ddddd", "28b3750fc02bb20e", "69151c3dcda6d692"],
    "cos_e": ["34cd5aea78645aa2", "5c81afe33342bb6d", "8ef664db9c7bf34e"],
    "cos_e_v1.11": ["fd63289814724b79", "1031bf9e516be326", "da62fa26c325e900"],
}
