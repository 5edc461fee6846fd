"""A trained run for others: the same answers as an adapter, as a merged model and in this process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from caref.errors import CarefError, DataError
from caref.experiments.exporting import export, push
from caref.experiments.run import RunOptions, execute
from caref.experiments.saved import SavedRun
from caref.experiments.spec import RunSpec
from caref.results.run_directory import RunDirectory

MakeSpec = Callable[..., RunSpec]

INPUTS = {
    "input_ids": torch.tensor([[5, 9, 13, 1], [6, 7, 1, 0]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]),
    "decoder_input_ids": torch.tensor([[0, 8, 4], [0, 5, 9]]),
}


@pytest.fixture
def saved(done: RunDirectory) -> SavedRun:
    return SavedRun.find(done.path)


def run_with(make_spec: MakeSpec, root: Path, **changes: Any) -> SavedRun:
    spec = make_spec(metrics=("accuracy",), encoder=None, **changes)
    execute(spec, root)
    return SavedRun.find(root / spec.directory_name)


@torch.no_grad()
def logits(model: torch.nn.Module) -> torch.Tensor:
    return model.eval()(**INPUTS).logits


WITHOUT_CAREF = """
import json, sys
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

for job in json.load(open(sys.argv[1])):
    expected = load_file(job["inputs"])
    wanted = expected.pop("logits")
    base = AutoModelForSeq2SeqLM.from_pretrained(job["base"], dtype=torch.float32)
    adapted = PeftModel.from_pretrained(base, job["adapter"]).eval()
    merged = AutoModelForSeq2SeqLM.from_pretrained(job["merged"], dtype=torch.float32).eval()
    with torch.no_grad():
        torch.testing.assert_close(adapted(**expected).logits, wanted, rtol=0, atol=0)
        torch.testing.assert_close(merged(**expected).logits, wanted, rtol=0, atol=job["rounding"])
    for folder in (job["adapter"], job["merged"]):
        assert AutoTokenizer.from_pretrained(folder)("the sky").input_ids
assert not any(name.split(".")[0] == "caref" for name in sys.modules)
print("same")
"""


@pytest.mark.slow
def test_three_forms_give_the_same_in_a_process_without_caref(make_spec: MakeSpec, tmp_path: Path) -> None:
    jobs = []
    for method in ("aq", "laq", "aqkv", "dec", "lora", "adalora", "ia3"):
        run = run_with(make_spec, tmp_path, method=method)
        place = tmp_path / method
        export(run, place / "adapter")
        export(run, place / "merged", merge=True)
        save_file({**INPUTS, "logits": logits(run.load())}, place / "inputs.safetensors")
        jobs.append(
            {
                "base": run.spec.model,
                "adapter": str(place / "adapter"),
                "merged": str(place / "merged"),
                "inputs": str(place / "inputs.safetensors"),
                # Trained copies are put in place as they are; products are added to what was there.
                "rounding": 0.0 if method in ("aq", "laq", "aqkv", "dec") else 1e-4,
            }
        )
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CAREF, str(tmp_path / "jobs.json")],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.stdout.strip().endswith("same"), done.stderr[-3000:]


def test_an_adapter_is_what_was_trained_and_no_more(saved: SavedRun, tmp_path: Path) -> None:
    assert export(saved, tmp_path / "out") == "adapter"
    stored = load_file(tmp_path / "out" / "adapter_model.safetensors")
    assert sum(weight.numel() for weight in stored.values()) == (
        saved.directory.read_result().trainable_parameters
    )
    assert (tmp_path / "out" / "tokenizer.json").is_file()
    settings = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == saved.spec.model


def test_the_base_model_can_be_named_as_others_load_it(saved: SavedRun, tmp_path: Path) -> None:
    export(saved, tmp_path / "out", base_id="owner/base")
    settings = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == "owner/base"
    card = (tmp_path / "out" / "README.md").read_text()
    assert "base_model: owner/base" in card
    assert '.from_pretrained("owner/base"' in card
    assert saved.spec.model not in card


def test_merged_it_is_a_plain_model(saved: SavedRun, tmp_path: Path) -> None:
    assert export(saved, tmp_path / "out", merge=True) == "model"
    assert not (tmp_path / "out" / "adapter_config.json").exists()
    from transformers import AutoModelForSeq2SeqLM

    plain = AutoModelForSeq2SeqLM.from_pretrained(str(tmp_path / "out"), dtype=torch.float32)
    torch.testing.assert_close(logits(plain), logits(saved.load()), rtol=0, atol=0)
    assert "library_name: transformers" in (tmp_path / "out" / "README.md").read_text()


def test_a_fully_trained_model_is_one_already(make_spec: MakeSpec, tmp_path: Path) -> None:
    run = run_with(make_spec, tmp_path / "runs", method="base")
    for merge in (False, True):
        assert export(run, tmp_path / f"out{merge}", merge=merge) == "model"
        assert (tmp_path / f"out{merge}" / "model.safetensors").is_file()


def test_a_run_writes_its_card_beside_the_weights(done: RunDirectory) -> None:
    card = (done.adapter_path / "README.md").read_text()
    result = done.read_result()
    assert result.run_id in card
    assert f"| accuracy | {result.value('accuracy'):.4g} |" in card
    assert done.read_predictions()[0].input in card
    assert "`aq`" in card
    assert "objective `caref` (alpha 2.0" in card
    assert 'PeftModel.from_pretrained(base, "adapter")' in card


def test_virtual_tokens_cannot_be_merged(make_spec: MakeSpec, tmp_path: Path) -> None:
    run = run_with(make_spec, tmp_path / "runs", method="prefix")
    with pytest.raises(CarefError, match="there is nothing to merge; export without --merge"):
        export(run, tmp_path / "out", merge=True)
    assert list(tmp_path.iterdir()) == [tmp_path / "runs"], "nothing half-written is left"
    assert export(run, tmp_path / "out") == "adapter"


def test_a_folder_that_holds_something_is_not_touched(saved: SavedRun, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(CarefError, match="is there already; name a new folder"):
        export(saved, tmp_path / "out")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["mine.txt"]
    (tmp_path / "empty").mkdir()
    export(saved, tmp_path / "empty")
    assert (tmp_path / "empty" / "adapter_config.json").is_file()


def test_runs_that_left_nothing(make_spec: MakeSpec, tmp_path: Path) -> None:
    spec = make_spec(metrics=("accuracy",), encoder=None)
    execute(spec, tmp_path, options=RunOptions(save_adapter=False))
    with pytest.raises(CarefError, match="holds no trained weights: it was run with --no-save-adapter"):
        SavedRun.find(tmp_path / spec.directory_name)
    with pytest.raises(DataError, match="holds no complete run"):
        SavedRun.find(tmp_path)


def test_an_adapter_of_another_model(
    saved: SavedRun, tiny_bert2bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told before the model's weights are read."""
    monkeypatch.setattr("caref.models.adapters.load_model", lambda _: pytest.fail("weights were loaded"))
    other = SavedRun.find(saved.directory.path, base_model=str(tiny_bert2bert))
    with pytest.raises(CarefError) as raised:
        other.load()
    assert "\n" not in str(raised.value)
    assert "does not fit" in str(raised.value)


class Hub:
    """Stands for the hub's client: notes what it is asked, and keeps what it is sent."""

    def __init__(self, kept: Path, refusal: Exception | None = None) -> None:
        self.kept, self.refusal = kept, refusal
        self.made: list[tuple[str, bool]] = []

    def create_repo(self, repo_id: str, *, private: bool, exist_ok: bool) -> None:
        assert exist_ok
        if self.refusal is not None:
            raise self.refusal
        self.made.append((repo_id, private))

    def upload_folder(self, *, repo_id: str, folder_path: Path, commit_message: str) -> str:
        import shutil

        shutil.copytree(folder_path, self.kept / repo_id)
        return f"https://hub.example/{repo_id}/commit/1"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub(tmp_path / "hub")
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: made)
    return made


def test_what_is_pushed(saved: SavedRun, hub: Hub) -> None:
    address = push(saved, "me/mine", merge=False, base_id="owner/base", private=True)
    assert address == "https://hub.example/me/mine/commit/1"
    assert hub.made == [("me/mine", True)]
    sent = hub.kept / "me" / "mine"
    assert {"adapter_model.safetensors", "adapter_config.json", "README.md", "tokenizer.json"} <= {
        file.name for file in sent.iterdir()
    }
    card = (sent / "README.md").read_text()
    assert 'PeftModel.from_pretrained(base, "me/mine")' in card
    assert saved.spec.model not in card + (sent / "adapter_config.json").read_text()


def test_an_adapter_that_nobody_else_could_load_is_not_pushed(saved: SavedRun, hub: Hub) -> None:
    with pytest.raises(CarefError, match="is not on the hub: nobody else could load it"):
        push(saved, "me/mine", merge=False, base_id=None, private=False)
    assert not hub.made
    push(saved, "me/merged", merge=True, base_id=None, private=False)
    assert saved.spec.model not in (hub.kept / "me" / "merged" / "README.md").read_text()


def test_a_refusal_of_the_hub_is_one_line(saved: SavedRun, hub: Hub) -> None:
    from huggingface_hub.errors import LocalTokenNotFoundError

    hub.refusal = LocalTokenNotFoundError("Token is required\nbut no token found.")
    with pytest.raises(CarefError, match=r"the hub did not take me/mine: Token is required but no token"):
        push(saved, "me/mine", merge=True, base_id=None, private=False)
