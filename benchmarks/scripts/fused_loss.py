"""Time and peak memory of the fused CAREF loss, forward and backward, against its baselines.

    python benchmarks/scripts/fused_loss.py --shapes 256x512x32128 512x1024x128256
    python benchmarks/scripts/fused_loss.py --device cuda --dtype bfloat16 --head trained --compile

Every round times every implementation, and ratios are medians over rounds. All that compute CAREF have
to give the same gradients. Peak memory is what a call holds beyond its inputs, measured in a call of its
own; what a library of matrix products takes for itself is not counted. `linear+cross_entropy`, `liger` and
`cut-cross-entropy` compute cross-entropy alone, without CAREF's penalties; `matmuls` only the matrix
products, as F.linear does them. Without --shapes all of them are measured that fit in the memory given.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import psutil
import torch
from loss_implementations import (
    CROSS_ENTROPY,
    EAGER,
    EAGER_COMPILED,
    FUSED,
    FUSED_COMPILED,
    FUSED_LEAN,
    FUSED_WITHOUT_ONEDNN,
    LIGER,
    LOGITS,
    LOGITS_CROSS_ENTROPY,
    MATMULS,
    PACKAGES,
    Implementations,
    Setting,
    Shape,
    Step,
    bytes_needed,
    from_logits,
    through_head,
)
from peak_memory import peak_extra_bytes
from rows import CSV, append_row, environment, paired_times, summary

MIB, GIB = 2**20, 2**30
TOLERANCES = {torch.float32: 1e-3, torch.bfloat16: 3e-2}  # of the largest gradient
CPU_TARGET_SHAPES = (Shape(256, 512, 32128), Shape(512, 1024, 128256))
HEADS = ((512, 32128), (1024, 32128), (1024, 128256), (4096, 128256), (3584, 262144))
GRID = tuple(Shape(tokens, *head) for head in HEADS for tokens in (256, 2048, 8192))

COMPUTE_CAREF = (FUSED, FUSED_LEAN, FUSED_COMPILED, FUSED_WITHOUT_ONEDNN, EAGER_COMPILED)
"""All but the formula, whose gradients theirs are held to."""

Quantity = Literal["time", "peak"]


class Group(NamedTuple):
    """Implementations that are measured together."""

    benchmark: str
    baseline: str
    build: Callable[[Shape, Setting], Implementations]

    def shape_of(self, shape: Shape) -> str:
        hidden = "" if self.baseline.startswith(LOGITS) else f" hidden={shape.hidden}"
        return f"tokens={shape.tokens}{hidden} vocab={shape.vocab}"


GROUPS = (
    Group("fused_loss", CROSS_ENTROPY, through_head),
    Group("fused_loss_from_logits", LOGITS_CROSS_ENTROPY, from_logits),
)


class Measured(NamedTuple):
    group: Group
    shape: Shape
    seconds: dict[str, list[float]]
    peak_bytes: dict[str, int]

    def ratio(self, quantity: Quantity, name: str, base: str) -> float | None:
        """Median over rounds of the ratio of times, or the ratio of peaks; None if one was not measured."""
        if name not in self.seconds or base not in self.seconds:
            return None
        if quantity == "peak":
            return self.peak_bytes[name] / self.peak_bytes[base]
        pairs = zip(self.seconds[name], self.seconds[base], strict=True)
        return statistics.median(value / other for value, other in pairs)


class Target(NamedTuple):
    """`quantity` of the fused loss is at most `limit` times that of `base`."""

    device: str
    quantity: Quantity
    base: str
    limit: float
    applies: Callable[[Shape, Setting], bool]


def _on_cpu(shape: Shape, setting: Setting) -> bool:
    return shape in CPU_TARGET_SHAPES and setting.dtype == torch.float32 and not setting.trained


TARGETS = (
    Target("cpu", "time", CROSS_ENTROPY, 0.8, _on_cpu),
    Target("cpu", "time", EAGER, 1 / 3, _on_cpu),
    Target("cpu", "peak", EAGER, 1 / 10, _on_cpu),
    Target("cuda", "time", LIGER, 1.15, lambda shape, setting: True),
    Target("cuda", "peak", LIGER, 1.0, lambda shape, setting: True),
    Target("cuda", "time", EAGER, 1 / 5, lambda shape, setting: shape.vocab == 128256),
)


def measure(group: Group, shape: Shape, setting: Setting, *, rounds: int, budget: int) -> Measured | None:
    """All of a group's implementations that can run; None where not even the baseline fits."""
    where = f"{group.benchmark} {group.shape_of(shape)}"
    if (needed := bytes_needed(shape, setting, group.baseline)) > budget:
        print(f"{where}: left out, needs {needed / GIB:.3g} GiB of {budget / GIB:.3g}")
        return None
    if setting.compile:
        torch.compiler.reset()  # after some shapes it would run what it cannot compile uncompiled
    steps, left_out = group.build(shape, setting)
    peaks: dict[str, int] = {}
    for name, step in steps.items():
        if (needed := bytes_needed(shape, setting, name)) > budget:
            left_out[name] = f"needs {needed / GIB:.3g} GiB of {budget / GIB:.3g}"
            continue
        try:
            step()  # warms up too: compiles, tunes
            peaks[name] = peak_extra_bytes(step, setting.device)
        except torch.OutOfMemoryError:
            left_out[name] = "ran out of memory"
    for name, reason in left_out.items():
        print(f"{where}: {name} left out, {reason}")
    if group.baseline not in peaks:
        return None
    steps = {name: steps[name] for name in peaks}
    check_agreement(steps, setting.dtype)
    timed = {name: _timed(step, setting.device) for name, step in steps.items()}
    seconds = paired_times(timed, rounds=rounds)
    return Measured(group, shape, seconds, peaks)


def check_agreement(steps: Mapping[str, Step], dtype: torch.dtype) -> None:
    """Raise unless all that compute CAREF give the gradients of the formula."""
    for name in steps:
        prefix = LOGITS if name.startswith(LOGITS) else ""
        if name.removeprefix(LOGITS) not in COMPUTE_CAREF:
            continue
        if prefix + EAGER not in steps:
            print(f"gradients of {name} not compared: {prefix + EAGER} is left out")
            continue
        for ours, reference in zip(steps[name](), steps[prefix + EAGER](), strict=True):
            error = float((ours - reference).abs().max() / reference.abs().max())
            if not error <= TOLERANCES[dtype]:
                raise SystemExit(f"a gradient of {name} is off by {error:.1e} of the largest")


def _timed(step: Step, device: str) -> Callable[[], object]:
    def synchronised() -> None:
        step()
        torch.cuda.synchronize(device)

    return synchronised if device.startswith("cuda") else step


def rows_of(measured: Measured, setting: Setting) -> Iterable[dict[str, object]]:
    """A row of time and one of memory for each implementation."""
    group, head = measured.group, "trained" if setting.trained else "frozen"
    mode = "forward+backward" + ("" if group.baseline.startswith(LOGITS) else f", {head} head")
    packages = ["torch", *(PACKAGES[name] for name in measured.seconds if name in PACKAGES)]
    if setting.device.startswith("cuda") and importlib.util.find_spec("triton"):
        packages.insert(1, "triton")
    shared = {
        "benchmark": group.benchmark,
        "shape": group.shape_of(measured.shape),
        "dtype": str(setting.dtype).removeprefix("torch."),
        **environment(setting.device, packages),
    }
    milliseconds = {name: [1000 * each for each in values] for name, values in measured.seconds.items()}
    mebibytes = {name: [peak / MIB] for name, peak in measured.peak_bytes.items()}
    tables = (("ms", mode, milliseconds), ("MiB", f"peak extra memory of {mode}", mebibytes))
    for unit, what, values in tables:
        for name in values:
            columns = summary(values[name], values[group.baseline])
            yield {**shared, "implementation": name, "mode": what, "unit": unit, **columns}


def print_table(measured: Measured) -> None:
    """Times with quartiles and ratios, and peaks, by implementation."""
    prefix = LOGITS if measured.group.baseline.startswith(LOGITS) else ""
    print(f"\n{measured.group.benchmark} {measured.group.shape_of(measured.shape)}")
    headings = ("median ms", "q25", "q75", "/ce", "/eager", "/matmuls", "peak MiB", "/eager")
    print(f"{'':24}" + "".join(f"{heading:>11}" for heading in headings))
    for name, values in measured.seconds.items():
        columns = summary([1000 * value for value in values], values)
        bases = (measured.group.baseline, prefix + EAGER, MATMULS)
        cells: list[float | None] = [
            *(float(str(columns[column])) for column in ("median", "q25", "q75")),
            *(measured.ratio("time", name, base) for base in bases),
            measured.peak_bytes[name] / MIB,
            measured.ratio("peak", name, prefix + EAGER),
        ]
        print(f"{name:24}" + "".join(f"{'-' if cell is None else f'{cell:.4g}':>11}" for cell in cells))


def verdicts(measured: list[Measured], setting: Setting) -> Iterable[str]:
    """A line for each target and shape: met or not, or that it was not measured."""
    for target in TARGETS:
        if not setting.device.startswith(target.device):
            continue
        what = f"{target.quantity} <= {target.limit:.3g} x {target.base}"
        judged = [
            each for each in measured if each.group is GROUPS[0] and target.applies(each.shape, setting)
        ]
        if not judged:
            yield f"{what}: not measured, for none of its shapes and settings was"
        for each in judged:
            for name in (FUSED, FUSED_LEAN, FUSED_COMPILED):
                ratio = each.ratio(target.quantity, name, target.base)
                if ratio is not None:
                    outcome = f"{ratio:.3g}, {'met' if ratio <= target.limit else 'NOT met'}"
                    yield f"{name} at {each.shape}, {what}: {outcome}"
                elif name == FUSED:
                    yield f"{name} at {each.shape}, {what}: not measured, for one of the two was left out"


def free_bytes(device: str) -> int:
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", nargs="+", type=Shape.parse, help="such as 256x512x32128")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--head", choices=("frozen", "trained"), default="frozen")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compile", action="store_true", help="measure what needs torch.compile too")
    parser.add_argument("--memory-gib", type=float, help="default: 60 %% of the free memory")
    parser.add_argument("--out", type=Path, default=CSV, help="the CSV to append to")
    parser.add_argument("--no-save", action="store_true", help="only print")
    given = parser.parse_args(arguments)

    setting = Setting(given.device, getattr(torch, given.dtype), given.head == "trained", given.compile)
    budget = int(given.memory_gib * GIB if given.memory_gib else 0.6 * free_bytes(given.device))
    usual = GRID if given.device.startswith("cuda") else (*CPU_TARGET_SHAPES, *GRID)
    results: list[Measured] = []
    done: set[tuple[str, str]] = set()
    for shape in given.shapes or usual:
        for group in GROUPS:
            key = group.benchmark, group.shape_of(shape)
            if key in done:
                continue
            done.add(key)
            measured = measure(group, shape, setting, rounds=given.rounds, budget=budget)
            if measured is None:
                continue
            results.append(measured)
            print_table(measured)
            if not given.no_save:
                for row in rows_of(measured, setting):
                    append_row(given.out, row)
    print(f"\n{given.device}, {given.dtype}, {given.head} head")
    for line in verdicts(results, setting):
        print(line)


if __name__ == "__main__":
    main()
