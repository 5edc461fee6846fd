"""``caref params``: several models, other formats, and the page of its output."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caref.methods import METHODS
from caref.methods.counting import count_for_config
from caref.models.loading import ModelSource, load_config

Caref = Callable[..., Any]
ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "tests" / "data" / "configs"
PAGE = ROOT / "docs" / "parameters.md"
# What is published of each model; the output layer counts where it is a matrix of its own.
TOTALS = {
    "flan-t5-small": 76_961_152,
    "flan-t5-base": 247_577_856,
    "flan-t5-large": 783_150_080,
    "flan-t5-xl": 2_849_757_184,
    "bart-large": 406_291_456,
    "bert2bert-base-uncased": 247_363_386,
    "gpt2-medium": 354_823_168,
    "pythia-410m": 405_334_016,
    "Llama-3.2-1B": 1_235_814_400,
    "Mistral-7B-v0.3": 7_248_023_552,
    "Qwen2.5-0.5B": 494_032_768,
    "Qwen3-0.6B": 596_049_920,
    "Phi-3-mini-4k-instruct": 3_821_079_552,
}


@pytest.mark.parametrize("model", TOTALS)
def test_the_total_is_that_of_the_published_model(model: str) -> None:
    config = load_config(ModelSource(str(CONFIGS / model)))
    assert count_for_config(METHODS.get("base")(), config).total == TOTALS[model]


def test_every_configuration_is_counted() -> None:
    assert {path.name for path in CONFIGS.iterdir()} == set(TOTALS)


# By hand: q is d_model x (heads * d_kv) in every layer of both stacks. GPT-2's and GPT-NeoX's q has a bias.
@pytest.mark.parametrize(
    ("model", "trained"),
    [
        ("flan-t5-small", 16 * 512 * 6 * 64),
        ("flan-t5-base", 24 * 768 * 768),
        ("flan-t5-large", 48 * 1024 * 1024),
        ("flan-t5-xl", 48 * 2048 * 2048),
        ("bart-large", 24 * (1024 * 1024 + 1024)),
        ("bert2bert-base-uncased", 24 * (768 * 768 + 768)),
        ("gpt2-medium", 24 * (1024 * 1024 + 1024)),
        ("pythia-410m", 24 * (1024 * 1024 + 1024)),
        ("Llama-3.2-1B", 16 * 2048 * 2048),
        ("Mistral-7B-v0.3", 32 * 4096 * 4096),
        ("Qwen2.5-0.5B", 24 * (896 * 896 + 896)),
        ("Qwen3-0.6B", 28 * 1024 * 16 * 128),
        ("Phi-3-mini-4k-instruct", 32 * 3072 * 3072),
    ],
)
def test_what_aq_trains_on_published_models(model: str, trained: int) -> None:
    count = count_for_config(METHODS.get("aq")(), load_config(ModelSource(str(CONFIGS / model))))
    assert (count.trainable, count.total) == (trained, TOTALS[model])


def test_several_models(caref: Caref, tiny_t5: Path, tiny_gpt2: Path) -> None:
    ended = caref("params", tiny_t5, tiny_gpt2, "--method", "aq", "--method", "lora")
    assert (ended.code, ended.err) == (0, "")
    one, other = ended.out.split("\n\n")
    assert one.startswith("tiny-t5: parameters that each method trains\n")
    assert other.startswith("tiny-gpt2: parameters that each method trains\n")
    assert all("│ aq " in table and "│ lora " in table and "│ base " not in table for table in (one, other))
    assert "│     2,112 │" in other  # 2 layers of 32 x 32 and 32


def test_formats_say_the_same(caref: Caref, tiny_t5: Path, tiny_gpt2: Path) -> None:
    def printed(output: str) -> str:
        ended = caref("params", tiny_t5, tiny_gpt2, "--method", "aq", "--method", "lora", "--format", output)
        assert (ended.code, ended.err) == (0, "")
        return ended.out

    records = json.loads(printed("json"))
    assert [(row["model"], row["method"]) for row in records] == [
        (model, method) for model in ("tiny-t5", "tiny-gpt2") for method in ("aq", "lora")
    ]
    aq = records[2]
    assert aq["trainable"] == 2112
    assert aq["percent"] == 100 * aq["trainable"] / aq["total"]
    assert list(csv.DictReader(io.StringIO(printed("csv")))) == [
        {name: str(value) for name, value in row.items()} for row in records
    ]
    assert printed("markdown").split("\n\n")[2:] == [
        "### tiny-gpt2",
        "| method | what is trained | trainable | of | percent |\n| --- | --- | ---: | ---: | ---: |\n"
        + "".join(
            f"| {row['method']} | {row['trained']} | {row['trainable']:,} | {row['total']:,} "
            f"| {row['percent']:.2f} |\n"
            for row in records[2:]
        ),
    ]


def test_two_models_of_one_name_are_two_tables(caref: Caref, tiny_t5: Path) -> None:
    out = caref("params", tiny_t5, tiny_t5, "--method", "aq").out
    assert out.count("tiny-t5: parameters") == 2
    assert out.count("│ aq ") == 2


def test_a_file_of_peft(caref: Caref, tiny_gpt2: Path, tmp_path: Path) -> None:
    file = tmp_path / "adapter_config.json"
    file.write_text(json.dumps({"peft_type": "IA3", "target_modules": ["c_attn"], "feedforward_modules": []}))
    out = caref("params", tiny_gpt2, "--method", "peft", "--peft-config-file", file, "--format", "json").out
    assert [row["trainable"] for row in json.loads(out)] == [2 * 96]
    told = caref("params", tiny_gpt2, "--method", "peft").mistake()
    assert "--peft-config-file" in told


def test_an_unknown_format(caref: Caref, tiny_t5: Path) -> None:
    assert "'--format'" in caref("params", tiny_t5, "--format", "yaml").mistake()


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_the_page_names_every_configuration_and_method(page: str) -> None:
    tables = re.findall(r"^### (\S+)$", page, re.MULTILINE)
    assert sorted(tables) == sorted(TOTALS)
    listed = [name for name in METHODS if name != "peft"]
    assert re.findall(r"^\| ([a-z]\S*) \|", page, re.MULTILINE) == ["method", *listed] * len(TOTALS)


@pytest.mark.slow
def test_the_page_is_what_the_command_prints(
    caref: Caref, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (command,) = re.findall(r"^```shell\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    words = shlex.split(command.replace("\\\n", " "))
    assert words[0] == "caref"
    monkeypatch.chdir(ROOT)
    ended = caref(*words[1:])
    assert (ended.code, ended.err) == (0, "")
    assert page.endswith(f"```\n\n{ended.out}"), "docs/parameters.md is not what its command prints"
