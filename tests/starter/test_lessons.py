from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from caref.starter.lessons import FIRST_KINDS, KINDS, Lesson, Teacher
from caref.tasks import TASKS, get_task
from caref.tasks.starter.drawing import part_of
from caref.tasks.starter.world import load_world


def teacher(seed: object = 0) -> Teacher:
    return Teacher(load_world(), random.Random(seed))


def lessons(count: int, *kinds: str) -> Iterator[Lesson]:
    one = teacher()
    return (one.lesson(kinds or None) for _ in range(count))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_makes_whole_lessons(kind: str) -> None:
    for lesson in lessons(300, kind):
        assert lesson.input.strip() and lesson.target.strip()
        assert not any(mark in f"{lesson.input}{lesson.target}" for mark in "{}\n")
        assert len(lesson.input) < 400


def test_the_same_seed_gives_the_same_lessons() -> None:
    assert list(lessons(200)) == list(lessons(200))
    assert list(lessons(200)) != [teacher(1).lesson() for _ in range(200)]


def test_no_lesson_looks_like_a_task() -> None:
    """Few-shot tuning has something left to do: the tasks' own prompts are never taught."""
    for lesson in lessons(5000):
        asked = lesson.input.lower()
        assert not asked.startswith(("explain nli", "explain what is more nonsensical", "explain what"))
        if asked.startswith("explain"):
            assert "\\n" not in asked


@pytest.mark.parametrize("kind", ["choice", "pair", "compare", "follows"])
def test_exercises_keep_to_the_facts_of_training(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = teacher()
    drawn = []
    original = Teacher._drawn

    def noted(self: Teacher, draw: object) -> object:
        drawn.append(original(self, draw))  # type: ignore[arg-type]
        return drawn[-1]

    monkeypatch.setattr(Teacher, "_drawn", noted)
    for _ in range(300):
        one.lesson([kind])
    assert len(drawn) == 300
    asked = [example.truth.facts[:1] for example in drawn]
    assert all(part_of(fact) == "train" for facts in asked for fact in facts)


@pytest.mark.parametrize("name", [name for name in TASKS if name.startswith("starter_")])
def test_nothing_that_is_evaluated_is_taught(name: str) -> None:
    told = {lesson.input.lower() for lesson in lessons(20_000, "choice", "pair", "compare", "follows")}
    fields = {"starter_nonsense": ("sent0", "sent1"), "starter_nli": ("premise", "hypothesis")}
    for example in get_task(name).load(None, "validation").examples[:300]:
        parts = [example.fields[field].lower() for field in fields.get(name, ("question",))]
        parts += [] if name in fields else [choice.lower() for choice in example.choices]
        assert not any(all(part in asked for part in parts) for asked in told)


def test_what_comes_first_is_copying() -> None:
    for lesson in lessons(500, *FIRST_KINDS):
        assert set(lesson.target.split()) <= set(
            lesson.input.replace(":", " ").replace("(", " ").replace(")", " ").replace(".", " ").split()
        ) | set(lesson.input.split())
