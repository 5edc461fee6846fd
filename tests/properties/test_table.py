"""The measured table: its instruments are held to what is known, then to what was found."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from caref.losses import OBJECTIVES
from caref.losses.objective import Objective, Term
from caref.properties.adaptive import adaptive, equal_entropies
from caref.properties.architecture_free import FAMILIES, architecture_free
from caref.properties.differentiable import differentiable, largest_jump
from caref.properties.part import Part, normal
from caref.properties.sparse import flow, sparse, starts
from caref.properties.table import PAPER, PROPERTIES, Row, cells, measure

PAGE = Path(__file__).resolve().parents[2] / "docs" / "objective.md"


class Made(Objective):
    """A penalty made for a test, beside nothing."""

    penalty: ClassVar[Callable[[Tensor], Tensor]]

    def terms(self, logits: Tensor, labels: Tensor) -> list[Term]:
        return [Term("made", type(self).penalty(logits.softmax(-1)))]


def part(penalty: Callable[[Tensor], Tensor]) -> Part:
    return Part(type("Made", (Made,), {"penalty": staticmethod(penalty)})())


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    return {row.objective: row for row in measure()}


# --- the instruments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("penalty", "verdict"),
    [
        (lambda p: p.square().sum(-1), "yes"),
        (lambda p: (p - 1 / 12).abs().sum(-1), "no"),  # a kink where P = 1/V
        (lambda p: p.amax(-1), "no"),  # a kink where two are the largest
        (lambda p: (p - 1 / 12).clamp(min=0).square().sum(-1), "yes"),  # the curvature alone jumps
        (lambda p: p.detach().square().sum(-1) + p.sum(-1) * 0 + (p * p.detach()).sum(-1), "no"),
    ],
    ids=["smooth", "kink", "largest", "curvature", "detached"],
)
def test_differentiable(penalty: Callable[[Tensor], Tensor], verdict: str) -> None:
    assert differentiable(part(penalty)).verdict == verdict


def test_a_jump_of_the_curvature_is_told() -> None:
    bent = differentiable(part(lambda p: (p - 1 / 12).clamp(min=0).square().sum(-1)))
    smooth = differentiable(part(lambda p: p.square().sum(-1)))
    assert bent.numbers["curvature_jump"] > 0.05 > 0.005 > smooth.numbers["curvature_jump"]


def test_a_jump_is_found_and_measured() -> None:
    def step(t: Tensor) -> Tensor:
        return torch.stack([t, 3.0 * (t > 0.123456)], dim=-1)

    assert largest_jump(step, 1e-9) == pytest.approx(3.0)
    assert largest_jump(lambda t: t.sin().unsqueeze(-1), 1e-9) < 1e-8


@pytest.mark.parametrize(
    ("penalty", "verdict"),
    [
        (lambda p: -p.square().sum(-1), "yes"),
        (lambda p: p.square().sum(-1), "no"),
        (lambda p: (p * (1 - p)).square().sum(-1), "depends"),  # 0 where flat and where certain
    ],
    ids=["sharpens", "flattens", "either"],
)
def test_sparse(penalty: Callable[[Tensor], Tensor], verdict: str) -> None:
    assert sparse(part(penalty)).verdict == verdict


def test_weights_do_not_change_where_the_logits_go() -> None:
    one, hundred = (part(lambda p, w=w: -w * p.square().sum(-1)) for w in (1, 100))
    start = normal(2, 20, seed=0)
    torch.testing.assert_close(flow(one, start), flow(hundred, start), rtol=0, atol=1e-2)


def test_equal_entropies() -> None:
    one, other = equal_entropies()
    for each in (one, other):
        assert each.sum().item() == pytest.approx(1, rel=1e-12)
        assert (each > 0).all()
    assert -(one * one.log()).sum().item() == pytest.approx(-(other * other.log()).sum().item(), rel=1e-12)
    assert one[0].item() == other[0].item() == 0.2
    assert (one[1] - other[1]).abs() > 0.1


@pytest.mark.parametrize(
    ("penalty", "verdict"),
    [
        (lambda p: p.log().mean(-1), "no"),  # of the probability alone
        (lambda p: (p * p.log()).sum(-1), "no"),  # of the probability and the entropy
        (lambda p: p.square().sum(-1), "yes"),
    ],
)
def test_adaptive(penalty: Callable[[Tensor], Tensor], verdict: str) -> None:
    assert adaptive(part(penalty)).verdict == verdict


def test_architecture_free_finds_what_is_not_finite() -> None:
    models = {name: FAMILIES[name]() for name in ("t5", "gpt2")}
    good, bad = part(lambda p: p.square().sum(-1)), part(lambda p: p.square().sum(-1) * float("inf"))
    assert architecture_free(good, models).verdict == "yes"
    assert architecture_free(bad, models).verdict == "no"
    assert architecture_free(bad, models).numbers["finite"] == {"t5": False, "gpt2": False}


@pytest.mark.parametrize("name", ["ce", "entmax15", "sparsemax"])
def test_scores_and_distribution_are_inverse(name: str) -> None:
    objective = OBJECTIVES.get(name)()
    probabilities = torch.stack(list(starts().values()))
    torch.testing.assert_close(objective.distribution(objective.scores(probabilities)), probabilities)


# --- what is measured -------------------------------------------------------------------------------


def test_every_objective_is_measured(rows: dict[str, Row]) -> None:
    assert {name.partition(" ")[0] for name in rows} == set(OBJECTIVES.names())
    assert all(set(row.findings) == set(PROPERTIES) for row in rows.values())
    assert set(PAPER) <= set(OBJECTIVES.names())


def test_penalties_and_whole_losses(rows: dict[str, Row]) -> None:
    penalties = {name for name, row in rows.items() if row.measured == "penalty"}
    assert penalties == {"caref", "sced", "sced (alpha=1)", "kl", "entropy", "additive", "asft"}


def test_what_was_found(rows: dict[str, Row]) -> None:
    """The verdicts that the documentation tells; a change of a formula shows here."""
    found = {name: tuple(row.findings[key].verdict for key in PROPERTIES) for name, row in rows.items()}
    assert found == {
        "caref": ("yes", "depends", "yes", "yes"),
        "ce": ("yes", "no", "no", "yes"),
        "sced": ("yes", "depends", "yes", "yes"),
        "sced (alpha=1)": ("no", "depends", "yes", "yes"),
        "kl": ("yes", "no", "no", "yes"),
        "entropy": ("yes", "no", "no", "yes"),
        "label_smoothing": ("yes", "no", "no", "yes"),
        "focal": ("yes", "no", "yes", "yes"),
        "entmax15": ("yes", "yes", "no", "yes"),
        "sparsemax": ("yes", "yes", "no", "yes"),
        "additive": ("yes", "yes", "yes", "yes"),
        "asft": ("yes", "no", "no", "no"),
        "eaft": ("no", "no", "no", "yes"),
    }


def test_where_the_paper_disagrees(rows: dict[str, Row]) -> None:
    disagreeing = {
        (name, key) for name, row in rows.items() for key in PROPERTIES if row.findings[key].disagrees
    }
    assert disagreeing == {
        ("sced", "sparse"),
        ("sced (alpha=1)", "sparse"),
        ("sced (alpha=1)", "differentiable"),
        ("entmax15", "differentiable"),
        ("entmax15", "architecture_free"),
        ("sparsemax", "differentiable"),
        ("sparsemax", "architecture_free"),
    }


def test_by_the_papers_caption_all_are_adaptive(rows: dict[str, Row]) -> None:
    assert all(row.findings["adaptive"].numbers["gap_between_tokens"] > 1e-3 for row in rows.values())


def test_sced_goes_to_certainty_from_a_confident_start_alone(rows: dict[str, Row]) -> None:
    found = rows["sced"].findings["sparse"].numbers
    assert [name for name, each in found.items() if each["shrinks"]] == ["one token 0.9, the rest equal"]
    assert found["one token 0.9, the rest equal"]["support"] == [200, 1]
    for name, each in found.items():
        if name != "one token 0.9, the rest equal":
            assert each["tail"][1] > 0.9


def test_the_page_holds_the_table(rows: dict[str, Row]) -> None:
    """Digits may differ by machine: what is compared is the text without the numbers."""
    text = PAGE.read_text(encoding="utf-8")
    for row in rows.values():
        line = f"| {' | '.join(cells(row, with_evidence=True))} |"
        assert without_numbers(line) in without_numbers(text)


def without_numbers(text: str) -> str:
    return re.sub(r"[\d.]+(e[+-]\d+)?(-\d+)?", "#", text)
