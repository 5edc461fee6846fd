"""The scripts of ``examples/drop-in/``: what they log is the loss by hand on the data they train on.

Every step of theirs sees all pairs, three in each of four micro-batches, whatever the order: the first entry
of the log is the loss of the untrained model on all of them.
"""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from caref.losses import caref_loss
from caref.models.loading import ModelSource

FOLDER = Path(__file__).parents[2] / "examples" / "drop-in"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.stem != "pairs")
TERMS = {
    "ce": {"lambda_sced": 0.0, "lambda_kl": 0.0},
    "ce + sced": {"lambda_sced": 1.0, "lambda_kl": 0.0},
    "ce + kl": {"lambda_sced": 0.0, "lambda_kl": 1.0},
}


def pairs() -> list[tuple[str, str]]:
    return runpy.run_path(str(FOLDER / "pairs.py"))["PAIRS"]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[dict[str, float]]]:
    """Runs a script as if from the command line; returns its log."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(FOLDER))

    def run(name: str, *arguments: str) -> list[dict[str, float]]:
        from accelerate.state import AcceleratorState, GradientState, PartialState

        for state in (AcceleratorState, GradientState, PartialState):
            state._reset_state()
        torch.manual_seed(0)
        return runpy.run_path(str(FOLDER / f"{name}.py"))["main"](arguments)

    return run


def without_dropout(model: Path, folder: Path) -> str:
    """A copy of a model whose configuration has no dropout, so that its loss in training can be told."""
    copy = Path(shutil.copytree(model, folder / "model"))
    config = json.loads((copy / "config.json").read_text())
    for key, value in config.items():
        if isinstance(value, float) and "drop" in key:
            config[key] = 0.0
    (copy / "config.json").write_text(json.dumps(config))
    return str(copy)


Positions = list[tuple[Tensor, Tensor]]


def encoder_decoder_positions(folder: str) -> Positions:
    """Logits and labels of each pair, alone, in float64."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float64)
    found = []
    for asked, told in pairs():
        labels = torch.tensor([tokenizer(told).input_ids])
        output = model(input_ids=torch.tensor([tokenizer(asked).input_ids]), labels=labels)
        found.append((output.logits[0].detach(), labels[0]))
    return found


def causal_positions(folder: str, *, prompt: bool = False) -> Positions:
    """Logits and labels of each pair, alone: of the answer and its end, or of the prompt as well."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    found = []
    for asked, told in pairs():
        before = tokenizer(asked).input_ids
        tokens = torch.tensor([*tokenizer(f"{asked} {told}").input_ids, tokenizer.eos_token_id])
        assert tokens[: len(before)].tolist() == before
        first = 1 if prompt else len(before)
        logits = model(input_ids=tokens[None]).logits[0].detach()
        found.append((logits[first - 1 : -1], tokens[first:]))
    return found


def loss_of(positions: Positions, **settings: float) -> float:
    total = sum(caref_loss(logits, labels, reduction="sum", **settings) for logits, labels in positions)
    return float(total) / sum(len(labels) for _, labels in positions)


def terms_of(positions: Positions) -> dict[str, float]:
    sums = {name: loss_of(positions, **settings) for name, settings in TERMS.items()}
    return {"ce": sums["ce"], "sced": sums["ce + sced"] - sums["ce"], "kl": sums["ce + kl"] - sums["ce"]}


def near(expected: float) -> Any:
    return pytest.approx(expected, rel=1e-5)


def check_terms(entry: dict[str, float], positions: Positions) -> None:
    for name, value in terms_of(positions).items():
        assert entry[name] == near(value), name


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_three_lines_are_the_loss(script: Path) -> None:
    source = script.read_text(encoding="utf-8")
    assert re.findall(r"# CarefLoss, line (\d) of 3", source) in (["1", "2", "3"], ["1", "3", "2"])
    assert "docs/objective.md" in (ast.get_docstring(ast.parse(source)) or "")


def test_the_page_names_every_script() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\((\w+\.py)\)", page)) == sorted(path.name for path in FOLDER.glob("*.py"))
    assert "../../docs/objective.md" in page


@pytest.fixture(scope="module")
def starter() -> Positions:
    """What the packaged model says before it is trained; its configuration has no dropout."""
    return encoder_decoder_positions(ModelSource("starter").location)


def test_transformers_trainer(run: Callable[..., list[dict[str, float]]], starter: Positions) -> None:
    log = run("transformers_trainer", "--steps", "2")
    assert log[0]["loss"] == near(loss_of(starter))
    assert log[1]["loss"] < log[0]["loss"]


def test_seq2seq_trainer(run: Callable[..., list[dict[str, float]]], starter: Positions) -> None:
    log = run("seq2seq_trainer", "--steps", "4")
    # The warm-up: nothing of SCED in the first step, all of it after 30 % of the four.
    assert log[0]["loss"] == near(loss_of(starter, lambda_sced=0.0))
    check_terms(log[0], starter)
    weights = [(e["loss"] - e["ce"] - 0.1 * e["kl"]) / e["sced"] for e in log if "loss" in e]
    assert weights == pytest.approx([0.0, 0.1 * 0.25 / 0.3, 0.1, 0.1], abs=1e-5)


def test_pytorch_loop(run: Callable[..., list[dict[str, float]]], starter: Positions) -> None:
    log = run("pytorch_loop", "--steps", "2")
    assert log[0]["loss"] == near(loss_of(starter))
    check_terms(log[0], starter)
    assert log[1]["loss"] < log[0]["loss"]


def check_causal(log: list[dict[str, float]], model: str) -> None:
    positions = causal_positions(model)
    assert log[0]["loss"] == near(loss_of(positions))
    check_terms(log[0], positions)
    assert log[1]["loss"] < log[0]["loss"]
    # The prompts do not count: with them it would be another loss.
    assert log[0]["loss"] != near(loss_of(causal_positions(model, prompt=True)))


@pytest.mark.parametrize("family", ["tiny_gpt2", "tiny_llama"])
def test_accelerate_loop(
    run: Callable[..., list[dict[str, float]]], request: pytest.FixtureRequest, tmp_path: Path, family: str
) -> None:
    model = without_dropout(request.getfixturevalue(family), tmp_path)
    check_causal(run("accelerate_loop", "--model", model, "--steps", "2"), model)


@pytest.mark.parametrize("family", ["tiny_gpt2", "tiny_llama"])
def test_trl_sft(
    run: Callable[..., list[dict[str, float]]], request: pytest.FixtureRequest, tmp_path: Path, family: str
) -> None:
    model = without_dropout(request.getfixturevalue(family), tmp_path)
    log = run("trl_sft", "--model", model, "--steps", "2")
    check_causal(log, model)
    # The trainer's own figures are still there.
    assert {"entropy", "mean_token_accuracy"} <= log[0].keys()


def command(*arguments: str, folder: Path) -> str:
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "GLOO_SOCKET_IFNAME": "lo",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "family", "positions_of"),
    [
        ("pytorch_loop", "tiny_t5", encoder_decoder_positions),
        ("accelerate_loop", "tiny_llama", causal_positions),
    ],
)
def test_two_processes(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    name: str,
    family: str,
    positions_of: Callable[[str], Positions],
) -> None:
    model = without_dropout(request.getfixturevalue(family), tmp_path)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    launcher = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_addr", "127.0.0.1"]
    script = str(FOLDER / f"{name}.py")
    printed = command(
        *launcher, "--master_port", port, script, "--model", model, "--steps", "1", folder=tmp_path
    )
    # Each process has half of the pairs; the first one prints the loss of both.
    assert ast.literal_eval(printed)["loss"] == near(loss_of(positions_of(model)))
