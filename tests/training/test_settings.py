from __future__ import annotations

import pytest
from pydantic import ValidationError

from caref.errors import CarefError
from caref.training.settings import PRESETS, TrainingSettings, preset


def test_the_papers_preset() -> None:
    paper = preset("paper")
    assert (paper.adam_beta1, paper.adam_beta2, paper.adam_epsilon) == (0.9, 0.999, 1e-8)
    assert (paper.learning_rate, paper.weight_decay, paper.batch_size) == (3e-5, 0.01, 4)
    assert (paper.epochs, paper.max_steps, paper.warmup_steps) == (50, -1, 500)
    assert (paper.schedule, paper.max_grad_norm) == ("linear", 1.0)
    assert (paper.max_input_tokens, paper.max_target_tokens) == (256, 64)
    assert paper.gradient_accumulation == 1
    # 48 shots in batches of 4, 50 times.
    assert 50 * 48 // 4 == 600


def test_febs_preset() -> None:
    feb = preset("feb")
    assert (feb.max_steps, feb.learning_rate, feb.schedule, feb.batch_size) == (300, 3e-5, "constant", 4)
    assert (feb.warmup_steps, feb.warmup_fraction) == (0, 0.0)


def test_the_default_is_a_preset_too() -> None:
    assert preset("fewshot") == TrainingSettings()


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_with_some_settings_changed(name: str) -> None:
    changed = preset(name, learning_rate=1e-3, precision="bf16")
    assert changed.model_dump() == {
        **preset(name).model_dump(), "learning_rate": 1e-3, "precision": "bf16",
    }  # fmt: skip


def test_what_does_not_fit() -> None:
    with pytest.raises(CarefError, match="unknown preset 'papr'; there are: fewshot, paper, feb"):
        preset("papr")
    for wrong in ({"epochs": -1}, {"batch_size": 0}, {"precision": "int8"}, {"warmup_fraction": 1}, {"lr": 1},
                  {"max_steps": -2}, {"learning_rate": 0}, {"adam_beta1": 1.0}):  # fmt: skip
        with pytest.raises(ValidationError):
            TrainingSettings(**wrong)  # type: ignore[arg-type]


def test_every_setting_is_described() -> None:
    assert all(field.description for field in TrainingSettings.model_fields.values())
