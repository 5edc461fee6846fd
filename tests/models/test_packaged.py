"""The starter model goes through the same loaders as any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from caref.models.loading import PACKAGED, ModelSource, load_config, load_model, load_tokenizer


@pytest.mark.parametrize("name", PACKAGED)
def test_a_packaged_model_loads_by_its_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).mkdir()  # a folder of that name is no trap
    monkeypatch.chdir(tmp_path)
    source = ModelSource(name)
    assert source.short_name == name
    assert load_config(source).is_encoder_decoder
    assert load_tokenizer(source).eos_token is not None
    model = load_model(source)
    assert model.name_or_path == source.location
    assert Path(source.location).is_dir()


def test_any_other_name_is_left_alone() -> None:
    assert ModelSource("./starter").location == "./starter"
    assert ModelSource("google/flan-t5-large").location == "google/flan-t5-large"
