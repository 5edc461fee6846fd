"""A PEFT configuration of the user's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from peft import LoraConfig, PeftModel

from caref.errors import CarefError
from caref.experiments.spec import resolve_spec
from caref.methods import METHODS
from caref.models.loading import ModelSource, empty_model, load_config, load_model


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_what_peft_saved_is_applied(tiny_t5: Path, tmp_path: Path) -> None:
    LoraConfig(r=3, target_modules=["q"], use_rslora=True, task_type="CAUSAL_LM").save_pretrained(tmp_path)
    method = METHODS.get("peft")(peft_config_file=str(tmp_path / "adapter_config.json"))
    model = method.apply(load_model(ModelSource(str(tiny_t5))))
    assert isinstance(model, PeftModel)
    config = model.peft_config["default"]
    assert (config.r, config.use_rslora, config.task_type) == (3, True, "SEQ_2_SEQ_LM")
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    assert trained
    assert all(".q.lora_" in name for name in trained)


def test_its_content_is_part_of_the_runs_id(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.json", {"peft_type": "LORA", "r": 2, "target_modules": ["q"]})
    given = {"task": "starter_nli", "model": "starter", "method": "peft"}
    first = resolve_spec(**given, method_settings={"peft_config_file": str(path)})
    write(path, {"peft_type": "LORA", "r": 3, "target_modules": ["q"]})
    second = resolve_spec(**given, method_settings={"peft_config_file": str(path)})
    assert first.run_id != second.run_id


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ([1], "names no peft_type"),
        ({"r": 2}, "names no peft_type"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, content: Any, message: str) -> None:
    path = write(tmp_path / "c.json", content)
    with pytest.raises(CarefError, match=message) as raised:
        METHODS.get("peft")(peft_config_file=str(path))
    assert "\n" not in str(raised.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(CarefError, match="needs --peft-config-file"):
        METHODS.get("peft")()
    with pytest.raises(CarefError, match=r"cannot read .*nothing\.json: No such file"):
        METHODS.get("peft")(peft_config_file=str(tmp_path / "nothing.json"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"peft_type": "NOPE"}, "is no configuration of PEFT: .*NOPE"),
        ({"peft_type": "LORA", "rang": 2}, "is no configuration of PEFT: .*rang"),
        ({"peft_type": "LORA", "r": 0, "target_modules": ["q"]}, "PEFT cannot apply .* to a t5 model: "),
        ({"peft_type": "LORA", "target_modules": ["nowhere"]}, "PEFT cannot apply .* t5 model: .*nowhere"),
    ],
)  # fmt: skip
def test_what_peft_does_not_take(tiny_t5: Path, tmp_path: Path, content: Any, message: str) -> None:
    method = METHODS.get("peft")(peft_config_file=str(write(tmp_path / "c.json", content)))
    with pytest.raises(CarefError, match=message) as raised:
        method.apply(load_model(ModelSource(str(tiny_t5))))
    assert "\n" not in str(raised.value)


def test_the_ranks_of_an_adalora_are_not_trained(tiny_t5: Path, tmp_path: Path) -> None:
    """On the meta device PEFT makes them trainable, as wherever it moves them."""
    content = {"peft_type": "ADALORA", "init_r": 4, "total_step": 9, "target_modules": ["q"]}
    method = METHODS.get("peft")(peft_config_file=str(write(tmp_path / "c.json", content)))
    model = method.apply(empty_model(load_config(ModelSource(str(tiny_t5)))))
    ranks = [p for name, p in model.named_parameters() if ".ranknum." in name]
    assert ranks
    assert not any(p.requires_grad for p in ranks)
