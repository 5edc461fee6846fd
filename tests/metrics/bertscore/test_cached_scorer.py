"""The scorer with a cache, and nBERT of many sets of predictions at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from caref.errors import CarefError
from caref.generation.prediction import Prediction
from caref.metrics import METRICS
from caref.metrics.bertscore import BertScorer, ScoreCache, baselines
from caref.metrics.bertscore.baselines import Baseline
from caref.metrics.nbert import NBert
from caref.settings import declared_settings

MakePrediction = Callable[..., Prediction]

CANDIDATES = ["the boat is cold", "Milk", "a man is playing guitar near the river bank", "unk", "milk"]
REFERENCES = [["a boat", "the water is cold"], ["milk is cold", ""], ["the man plays"], ["a boat"], ["unk"]]
TOLERANCE = 1e-6  # stated by BertScorer


@pytest.fixture
def scorer(tiny_roberta: Path, tmp_path: Path) -> BertScorer:
    return BertScorer(tiny_roberta, 3, device="cpu", lowercase=True, cache=ScoreCache(tmp_path))


@pytest.fixture
def expected(tiny_roberta: Path) -> list[float]:
    return BertScorer(tiny_roberta, 3, device="cpu", lowercase=True).f1(CANDIDATES, REFERENCES)


@pytest.fixture
def embedded(scorer: BertScorer, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The texts that the scorer has embedded."""
    texts: list[tuple[int, ...]] = []
    embed = scorer.encoder.embed
    monkeypatch.setattr(scorer.encoder, "embed", lambda batch: texts.extend(batch) or embed(batch))
    return texts


def test_a_cold_cache_changes_no_bit_and_a_warm_one_computes_nothing(
    scorer: BertScorer, expected: list[float], embedded: list[tuple[int, ...]]
) -> None:
    assert scorer.f1(CANDIDATES, REFERENCES) == expected
    assert len(embedded) == len(set(embedded)) == 8
    embedded.clear()
    told: list[tuple[int, int]] = []
    assert scorer.f1(CANDIDATES, REFERENCES, on_progress=lambda *each: told.append(each)) == expected
    assert (embedded, told) == ([], [])


def test_a_new_pair_of_known_texts_embeds_nothing(
    scorer: BertScorer, embedded: list[tuple[int, ...]], tiny_roberta: Path
) -> None:
    scorer.f1(CANDIDATES, REFERENCES)
    embedded.clear()
    mixed = [REFERENCES[(i + 1) % 5] for i in range(5)]
    told: list[tuple[int, int]] = []
    found = scorer.f1(CANDIDATES, mixed, on_progress=lambda *each: told.append(each))
    assert embedded == []
    assert told[-1][0] == told[-1][1] > 0  # comparing them is the work
    plain = BertScorer(tiny_roberta, 3, device="cpu", lowercase=True)
    assert found == pytest.approx(plain.f1(CANDIDATES, mixed), abs=TOLERANCE)


def test_what_is_known_in_part_gives_the_same_scores(
    scorer: BertScorer, expected: list[float], embedded: list[tuple[int, ...]]
) -> None:
    for index in (2, 0):
        scorer.f1([CANDIDATES[index]], [REFERENCES[index]])
    assert scorer.f1(CANDIDATES, REFERENCES) == pytest.approx(expected, abs=TOLERANCE)
    assert len(embedded) == len(set(embedded)) == 8


def test_layers_are_kept_apart(scorer: BertScorer, tiny_roberta: Path) -> None:
    scorer.f1(CANDIDATES, REFERENCES)
    other = BertScorer(tiny_roberta, 2, device="cpu", lowercase=True, cache=scorer.cache)
    plain = BertScorer(tiny_roberta, 2, device="cpu", lowercase=True)
    assert other.f1(CANDIDATES, REFERENCES) == plain.f1(CANDIDATES, REFERENCES)


def test_lower_case_and_not_share_a_cache_without_harm(scorer: BertScorer, tiny_roberta: Path) -> None:
    scorer.f1(CANDIDATES, REFERENCES)
    other = BertScorer(tiny_roberta, 3, device="cpu", cache=scorer.cache)
    plain = BertScorer(tiny_roberta, 3, device="cpu")
    expected = plain.f1(CANDIDATES, REFERENCES)
    assert other.f1(CANDIDATES, REFERENCES) == pytest.approx(expected, abs=TOLERANCE)


def test_settings_are_readable_beside_the_numbers(scorer: BertScorer, tmp_path: Path) -> None:
    scorer.f1(CANDIDATES, REFERENCES)
    [path] = tmp_path.glob("bertscore/*/settings.json")
    fingerprint = scorer.fingerprint()
    names = ("encoder_sha256", "layer", "prefix_space", "max_tokens", "versions")
    assert json.loads(path.read_text()) == {**{name: fingerprint[name] for name in names}, "device": "cpu"}


def test_damage_gives_a_warning_and_the_right_numbers(
    scorer: BertScorer, expected: list[float], tmp_path: Path, tiny_roberta: Path
) -> None:
    scorer.f1(CANDIDATES, REFERENCES)
    for path in tmp_path.glob("bertscore/*/*s"):  # .scores and .vectors
        data = bytearray(path.read_bytes())
        data[-2] ^= 1
        path.write_bytes(data)
    other = BertScorer(tiny_roberta, 3, device="cpu", lowercase=True, cache=ScoreCache(tmp_path))
    told: list[tuple[int, int]] = []
    with pytest.warns(UserWarning, match="is not as it was written") as warned:
        found = other.f1(CANDIDATES, REFERENCES, on_progress=lambda *each: told.append(each))
    assert len(warned) == 2
    assert found == pytest.approx(expected, abs=TOLERANCE)
    assert told[-1][0] == told[-1][1]


def test_what_was_embedded_before_an_interrupt_is_kept(
    scorer: BertScorer, embedded: list[tuple[int, ...]]
) -> None:
    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    scorer.batch_tokens = 1
    with pytest.raises(KeyboardInterrupt):
        scorer.f1(CANDIDATES, REFERENCES, on_progress=interrupt)
    assert len(embedded) == 1
    scorer.f1(CANDIDATES, REFERENCES)
    assert len(embedded) == len(set(embedded)) == 8


def test_without_a_cache_nothing_is_written_or_remembered(
    tiny_roberta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_prediction: MakePrediction
) -> None:
    monkeypatch.setenv("CAREF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    plain = BertScorer(tiny_roberta, 3, device="cpu")
    first = plain.f1(CANDIDATES, REFERENCES)
    for candidate in CANDIDATES:
        plain.f1([candidate], [["a boat", "milk"]])
    assert plain.f1(CANDIDATES, REFERENCES) == first
    metric = NBert(str(tiny_roberta), 3, device="cpu")
    metric.compute([make_prediction()])
    assert metric._known == {}
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def sets(make_prediction: MakePrediction) -> list[list[Prediction]]:
    rows = [
        ("Milk is cold", "bank", ("the milk", "Cold milk")),
        ("the boat", "boat", ("a boat is there", "")),
        ("a man", "bank", ("the man is playing",)),
        ("", "bank", ("the boat",)),
    ]
    every = [
        make_prediction(id=str(index), explanation=text, label=label, gold_explanations=references)
        for index, (text, label, references) in enumerate(rows)
    ]
    return [every, every[1:], [], every[:2] * 2]


def test_prepared_sets_are_only_looked_up(
    tiny_roberta: Path, sets: list[list[Prediction]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = NBert(str(tiny_roberta), 3, device="cpu")
    expected = [plain.compute(each) for each in sets]
    metric = NBert(str(tiny_roberta), 3, device="cpu")
    told: list[tuple[int, int]] = []
    metric.prepare(sets, on_progress=lambda *each: told.append(each))
    assert told[-1][0] == told[-1][1] > 0
    monkeypatch.setattr(metric.scorer.encoder, "embed", None)
    metric.prepare(sets)
    for each, result in zip(sets, expected, strict=True):
        found = metric.compute(each)
        assert found.values == pytest.approx(result.values, abs=1e-4)
        assert found.fingerprint == result.fingerprint
        assert found.notes == result.notes


def test_nothing_prepared_loads_nothing() -> None:
    NBert("/no/such/encoder").prepare([[], []])


def test_nbert_keeps_its_scores_where_it_is_told(
    tiny_roberta: Path, tmp_path: Path, sets: list[list[Prediction]]
) -> None:
    NBert(str(tiny_roberta), 3, device="cpu", cache=ScoreCache(tmp_path / "kept")).compute(sets[0])
    assert list((tmp_path / "kept").rglob("*.scores"))


def test_the_cache_is_no_setting_and_the_baseline_is_one() -> None:
    settings = declared_settings(METRICS.get("nbert"))
    assert list(settings) == ["encoder", "layer", "f1_baseline"]
    assert settings["f1_baseline"].type is float
    assert "fraction" in settings["f1_baseline"].description


def test_rescaling_is_linear_and_named(tiny_roberta: Path, sets: list[list[Prediction]]) -> None:
    metric = NBert(str(tiny_roberta), 3, 0.6, device="cpu")
    result = metric.compute(sets[0])
    scores = [
        score for score, p in zip(result.per_example["bertscore_f1"], sets[0], strict=True) if p.correct
    ]
    expected = sum(100 * (score / 100 - 0.6) / 0.4 for score in scores if score is not None) / 3
    assert result.values["f1_given_right_rescaled"] == pytest.approx(expected)
    assert result.fingerprint["f1_baseline"] == {"value": 0.6, "source": "given"}
    assert result.fingerprint["rescaled"] is False  # nbert itself
    assert NBert(str(tiny_roberta), 3, 0.0, device="cpu").compute(sets[0]).values[
        "f1_given_right_rescaled"
    ] == pytest.approx(result.values["f1_given_right"])


def test_a_baseline_is_stored_for_an_encoder_and_a_layer(
    tiny_roberta: Path, sets: list[list[Prediction]], monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = NBert(str(tiny_roberta), 3, device="cpu")
    without = metric.compute(sets[0])
    assert without.values["f1_given_right_rescaled"] is None
    assert "pass f1_baseline" in without.notes["f1_given_right_rescaled"]
    assert without.fingerprint["f1_baseline"] == {"value": None, "source": None}
    key = (without.fingerprint["encoder_sha256"], 3, True)
    monkeypatch.setitem(baselines.BASELINES, key, Baseline(0.5, 0.01, 10))
    stored = metric.compute(sets[0])
    assert stored.fingerprint["f1_baseline"] == {"value": 0.5, "source": "stored"}
    f1_given_right = stored.values["f1_given_right"]
    assert f1_given_right is not None
    assert stored.values["f1_given_right_rescaled"] == pytest.approx(2 * f1_given_right - 100)
    assert (
        NBert(str(tiny_roberta), 2, device="cpu").compute(sets[0]).values["f1_given_right_rescaled"] is None
    )


@pytest.mark.parametrize("baseline", [1.0, 83.2, -1.5, float("nan")])
def test_a_baseline_that_is_no_fraction_is_refused(baseline: float) -> None:
    with pytest.raises(CarefError, match=r"f1_baseline must be a fraction of at least -1 and below 1"):
        NBert(f1_baseline=baseline)


def test_the_packaged_encoder_has_a_baseline() -> None:
    try:
        fingerprint = BertScorer("offline", device="cpu", lowercase=True).fingerprint()
    except CarefError:
        pytest.skip("the offline extra is not installed")
    stored = baselines.stored_baseline(fingerprint["encoder_sha256"], fingerprint["layer"], True)
    assert stored is not None
    assert 0 < stored.standard_error < 0.01 < stored.f1 < 0.9


def test_nbert_has_intervals_over_examples(tiny_roberta: Path, sets: list[list[Prediction]]) -> None:
    metric = NBert(str(tiny_roberta), 3, 0.25, device="cpu")
    many = [each.model_copy(update={"id": f"{copy}-{each.id}"}) for copy in range(20) for each in sets[0]]
    result = metric.compute(many)
    assert result.intervals.keys() == {"nbert", "f1_all", "f1_given_right", "f1_given_right_rescaled"}
    for name, (low, high) in result.intervals.items():
        value = result.values[name]
        assert value is not None
        assert low < value < high
    assert metric.compute(many[::-1]).intervals == result.intervals
    straight, rescaled = (result.intervals[f"f1_given_right{end}"] for end in ("", "_rescaled"))
    assert rescaled == pytest.approx([(each - 25) / 0.75 for each in straight])
    assert metric.compute(sets[0][:1]).intervals == {}
    wrong = [each.model_copy(update={"label": "neither"}) for each in many]
    assert metric.compute(wrong).intervals.keys() == {"nbert", "f1_all"}
