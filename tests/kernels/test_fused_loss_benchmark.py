"""The benchmark of the fused loss at a tiny size, so that it cannot go stale."""

from __future__ import annotations

import csv
from pathlib import Path
from types import ModuleType

import pytest
import torch

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks" / "scripts"
MIB = 2**20

THROUGH_HEAD = [
    *("fused", "eager", "linear+cross_entropy", "fused-without-onednn", "matmuls", "matmuls-onednn"),
]
FROM_LOGITS = ["logits-fused", "logits-eager", "logits-cross_entropy"]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import fused_loss

    return fused_loss


@pytest.fixture
def implementations(benchmark: ModuleType) -> ModuleType:
    import loss_implementations

    return loss_implementations


def run(benchmark: ModuleType, *options: str) -> None:
    benchmark.main(["--device", "cpu", "--rounds", "2", *options])


@pytest.mark.parametrize("head", ["frozen", "trained"])
def test_a_row_of_time_and_one_of_memory_per_implementation(
    benchmark: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], head: str
) -> None:
    out = tmp_path / "benchmarks.csv"
    run(benchmark, "--shapes", "8x4x50", "8x6x50", "--head", head, "--out", str(out))
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    first = [row for row in rows if row["shape"] == "tokens=8 hidden=4 vocab=50"]
    assert [row["implementation"] for row in first] == THROUGH_HEAD * 2
    logits = [row for row in rows if row["benchmark"] == "fused_loss_from_logits"]
    assert [row["implementation"] for row in logits] == FROM_LOGITS * 2  # once, whatever the hidden size
    assert {row["shape"] for row in logits} == {"tokens=8 vocab=50"}
    mode = f"forward+backward, {head} head"
    assert {(row["unit"], row["mode"], row["runs"]) for row in first} == {
        ("ms", mode, "2"),
        ("MiB", f"peak extra memory of {mode}", "1"),
    }
    baselines = [row for row in rows if row["implementation"].endswith("cross_entropy")]
    assert {float(row["ratio_to_baseline"]) for row in baselines} == {1.0}
    assert all(float(row["q25"]) <= float(row["median"]) <= float(row["q75"]) for row in rows)
    printed = capsys.readouterr().out
    assert all(name in printed for name in (*THROUGH_HEAD, *FROM_LOGITS, "not measured"))


def test_nothing_is_written_without_saving(benchmark: ModuleType, tmp_path: Path) -> None:
    out = tmp_path / "benchmarks.csv"
    run(benchmark, "--shapes", "8x4x50", "--dtype", "bfloat16", "--no-save", "--out", str(out))
    assert not out.exists()


def test_what_does_not_fit_is_left_out(
    benchmark: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "benchmarks.csv"
    shapes = ["--shapes", "16x4x2000", "64x4x5000"]  # logits of 0.12 and 1.22 MiB
    run(benchmark, *shapes, "--memory-gib", "0.001", "--out", str(out))
    printed = capsys.readouterr().out
    assert "fused_loss tokens=64 hidden=4 vocab=5000: left out, needs" in printed
    assert "fused_loss tokens=16 hidden=4 vocab=2000: eager left out, needs" in printed
    assert "gradients of fused not compared" in printed
    text = out.read_text()
    assert "eager" not in text and "vocab=5000" not in text and "matmuls" in text


def test_a_shape_has_three_sizes(benchmark: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(benchmark, "--shapes", "8x50")
    assert "a shape is TOKENSxHIDDENxVOCAB, such as 256x512x32128, got 8x50" in capsys.readouterr().err


def test_the_peak_of_a_known_allocation(benchmark: ModuleType) -> None:
    def one_after_the_other() -> None:
        block = torch.empty(64 * MIB, dtype=torch.uint8)
        del block
        torch.empty(MIB, dtype=torch.uint8)

    def both_at_once() -> None:
        block = torch.empty(64 * MIB, dtype=torch.uint8)
        torch.empty(MIB, dtype=torch.uint8)
        del block

    assert benchmark.peak_extra_bytes(one_after_the_other, "cpu") == 64 * MIB
    assert benchmark.peak_extra_bytes(both_at_once, "cpu") == 65 * MIB
    assert benchmark.peak_extra_bytes(lambda: None, "cpu") == 0


def test_the_peak_counts_what_the_backward_pass_takes(benchmark: ModuleType) -> None:
    values = torch.rand(MIB // 4, requires_grad=True)
    # The exponential, kept for the backward pass, and the gradient: 1 MiB each.
    peak = benchmark.peak_extra_bytes(lambda: values.exp().sum().backward(), "cpu")
    assert peak == pytest.approx(2 * MIB, abs=1024)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("trained", [False, True])
def test_no_more_memory_is_taken_than_estimated(
    benchmark: ModuleType, implementations: ModuleType, dtype: torch.dtype, trained: bool
) -> None:
    shape = implementations.Shape(64, 8, 10_000)
    setting = implementations.Setting("cpu", dtype, trained, False)
    for group in benchmark.GROUPS:
        measured = benchmark.measure(group, shape, setting, rounds=1, budget=2**30)
        for name in (group.baseline, *(name for name in measured.peak_bytes if name.endswith("eager"))):
            estimate = implementations.bytes_needed(shape, setting, name)
            assert measured.peak_bytes[name] <= 1.05 * estimate, name


def test_gradients_of_another_loss_are_noticed(benchmark: ModuleType) -> None:
    steps = {"eager": lambda: [torch.ones(2)], "fused": lambda: [torch.tensor([1.0, 1.1])]}
    with pytest.raises(SystemExit, match=r"a gradient of fused is off by 1\.0e-01"):
        benchmark.check_agreement(steps, torch.float32)


def test_a_target_is_judged_by_what_was_measured(benchmark: ModuleType, implementations: ModuleType) -> None:
    shape = implementations.Shape(256, 512, 32128)
    setting = implementations.Setting("cpu", torch.float32, False, False)
    seconds = {"fused": [1.0, 8.0, 1.0], "linear+cross_entropy": [2.0, 8.0, 2.0]}
    peaks = {"fused": 1, "linear+cross_entropy": 1}
    measured = benchmark.Measured(benchmark.GROUPS[0], shape, seconds, peaks)
    fast, *others = benchmark.verdicts([measured], setting)
    assert fast == "fused at 256x512x32128, time <= 0.8 x linear+cross_entropy: 0.5, met"
    assert [line.partition(": ")[2] for line in others] == [
        "not measured, for one of the two was left out"
    ] * 2
    slow = measured._replace(seconds=seconds | {"fused": [9.0, 9.0, 9.0]})
    assert next(iter(benchmark.verdicts([slow], setting))).endswith(": 4.5, NOT met")


def test_the_page_holds_the_measured_numbers(benchmark: ModuleType) -> None:
    import speed_page

    text = speed_page.PAGE.read_text(encoding="utf-8")
    assert text.count("<!-- table: ") == len(speed_page.TABLES)
    assert speed_page.page(text) == text, "python benchmarks/scripts/speed_page.py"
    assert "| 256 × 512 × 32,128 |" in text
