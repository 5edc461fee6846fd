"""The listing holds every fact and every template."""

from __future__ import annotations

from caref.tasks.starter import wording
from caref.tasks.starter.listing import fact_lines, template_lines
from caref.tasks.starter.world import BIGGER, IS_A, load_world

WORLD = load_world()


def test_every_fact_is_a_sentence_on_the_line_of_its_thing() -> None:
    lines = dict(line.strip().split(": ", 1) for line in fact_lines(WORLD) if line.startswith("  "))
    assert set(lines) == set(WORLD.things)
    for fact in WORLD.facts():
        if fact.relation not in (IS_A, BIGGER):
            told = wording.fill(wording.STATEMENTS[fact.relation][0], fact, WORLD)
            assert told in lines[fact.thing].split("; ")
    assert "a penguin cannot fly" in lines["penguin"]
    assert "a snake does not have legs" in lines["snake"]
    assert lines["sun"].endswith("size 12")


def test_one_kind_with_those_under_it() -> None:
    headings = [line for line in fact_lines(WORLD, kind="animal") if not line.startswith(" ")]
    assert headings == ["animal: an animal", "bird: a bird", "fish: a fish", "insect: an insect"]
    assert len(list(fact_lines(WORLD, thing="owl"))) == 2
    assert list(fact_lines(WORLD, kind="fish", thing="owl")) == []


def test_every_template() -> None:
    told = "\n".join(template_lines())
    for templates in (wording.STATEMENTS, wording.DENIALS, wording.ASK_VALUE, wording.ASK_THING):
        assert all(each in told for words in templates.values() for each in words)
    for words in (*wording.SENTENCES.values(), wording.SCENES, wording.OPEN_CLAUSES):
        assert all(each in told for each in words)
