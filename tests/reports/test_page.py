"""The page and its figures: whole, safe to open, the same for the same numbers."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import pytest

from caref.reports.figures import COLOURS, accuracy_figure, reliability_figure
from caref.reports.page import render_page, write_page
from caref.reports.summary import Summary

MakeSummary = Callable[..., Summary]

ATTACK = "yes because <script>alert('1')</script> & \"so\""
RIGHT, WRONG = ("yes because it is so", 0.75), ("no because it is not", 0.25)
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Checked(HTMLParser):
    """Fails on elements that do not nest; collects elements, attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(summary: Summary, **words: object) -> str:
    return render_page(summary, title="A title", command="caref quickstart", **words)  # type: ignore[arg-type]


def test_the_page_holds_everything_and_fetches_nothing(make_summary: MakeSummary) -> None:
    page = Checked(page_of(make_summary([RIGHT] * 20), about=["Why."], not_shown=["That it is good."]))
    for told in (
        "A title", "Why.", "That it is good.", "caref quickstart", "Accuracy: CAREF is better than CE",
        "100.0 ± 0.0", "+100.0 points", "question 3", "yes because it is so", "no because it is not",
        "Brier score, CE with its temperature scaled (lower is better)", "CAREF is better than scaled CE",
        "Temperature scaling divides the logarithms", "NLL", "15 bins of equal width",
        "What this does not show", "together 15 s of computing", "Python 3.11.2", "at most 250 MiB",
    ):  # fmt: skip
        assert told in page.text, told
    assert "factor's change" not in page.text  # nBERT was not computed
    assert page.elements.count("svg") == 2
    assert not {"script", "link", "img", "iframe", "image"} & set(page.elements)
    fetched = [
        (name, value)
        for name, value in page.attributes
        if name in ("src", "href", "xlink:href", "action") and not (value or "").startswith("#")
    ]
    assert fetched == []
    assert [value for _, value in page.attributes if "url(" in (value or "") and "url(#" not in value] == []
    assert "@import" not in page_of(make_summary([RIGHT] * 2))


def test_what_a_model_wrote_stays_text(make_summary: MakeSummary) -> None:
    page = page_of(make_summary([(ATTACK, 0.75)] * 3), about=["<b>bold</b>"])
    assert "<script" not in page
    checked = Checked(page)
    assert ATTACK in checked.text
    assert "<b>bold</b>" in checked.text


def test_without_a_reason_it_is_marked(make_summary: MakeSummary) -> None:
    page = Checked(page_of(make_summary([RIGHT, ("yes", 0.75), ("mumble", 0.75)])))
    marks = re.findall("[✓✗] [a-z, ]+", page.text)
    assert {"✓ right", "✓ right, no explanation", "✗ wrong", "✗ wrong, no explanation"} == set(marks)


def test_the_same_summary_gives_the_same_page(make_summary: MakeSummary, tmp_path: Path) -> None:
    summary = make_summary([RIGHT, WRONG, RIGHT])
    with matplotlib.rc_context({"axes.titlepad": 50, "axes.grid": True}):  # a reader's own matplotlibrc
        first = page_of(summary)
    write_page(tmp_path / "report.html", first)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page_of(summary)


@pytest.mark.parametrize("figure", [accuracy_figure, reliability_figure])
def test_figures_are_valid_and_take_the_colour_of_the_text(
    make_summary: MakeSummary, figure: Callable[[Summary], str]
) -> None:
    svg = figure(make_summary([RIGHT, WRONG, RIGHT]))
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "currentColor" in svg
    assert not re.search("#0{6}|#f{6}|dc:date|Matplotlib", svg)
    assert {COLOURS[1], COLOURS[2]} <= set(re.findall("#[0-9a-f]{6}", svg))
    texts = {"".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"small"} <= texts


def test_two_figures_on_a_page_have_no_id_in_common(make_summary: MakeSummary) -> None:
    summary = make_summary([RIGHT, WRONG, RIGHT])
    one, other = (
        {element.get("id") for element in ElementTree.fromstring(figure(summary)).iter()} - {None}
        for figure in (accuracy_figure, reliability_figure)
    )
    assert one and other and not one & other


def test_chance_is_drawn_where_it_is_known(make_summary: MakeSummary) -> None:
    svg = accuracy_figure(make_summary([RIGHT]))
    assert ">chance<" in svg
    for label in ("before", "CE", "CAREF"):
        assert f">{label}<" in svg
