"""Several processes at one cache, and processes that are killed while they write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from caref.metrics.bertscore import ScoreCache
from caref.metrics.bertscore.shelf import Shelf

WRITER = """
import sys, numpy as np
from caref.metrics.bertscore import ScoreCache, shelf
shelf._BUFFER_BYTES = 1
folder, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
number = first
while number < first + count:
    each = ScoreCache(folder).shelf({"layer": 1})
    each.add_scores({("a", str(number + k)): (number + k) / 1e6 for k in range(10)})
    each.add_vectors({(number,) * 3: np.full((3, 64), number, np.float32)})
    number += 10
    print(number, flush=True)
"""

DYING = """
import os, signal, sys, numpy as np
from pathlib import Path
from caref.metrics.bertscore import ScoreCache, shelf
moment, folder = sys.argv[1:]
shelf._BUFFER_BYTES, shelf._MERGE_ABOVE = 1, 2
each = ScoreCache(folder).shelf({"layer": 1})
for number in range(2):
    each.add_scores({("a", str(number)): number / 1e6})
    each.add_vectors({(10 * number,) * 3: np.full((3, 64), 10 * number, np.float32)})

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

if moment == "half written":
    real = Path.open
    def opened(path, mode="r", *rest, **named):
        file = real(path, mode, *rest, **named)
        if "x" not in mode:
            return file
        class Half:
            def __enter__(self): return self
            def __exit__(self, *_): pass
            def write(self, part):
                file.write(bytes(part)[: len(part) // 2]); file.flush(); die()
        return Half()
    Path.open = opened
elif moment == "written, not renamed":
    Path.rename = die
elif moment == "merged, not cleared":
    Path.unlink = die
each.add_scores({("a", "2"): 2 / 1e6})
each.add_vectors({(20,) * 3: np.full((3, 64), 20, np.float32)})
die()
"""


def opened(folder: Path) -> Shelf:
    """The shelf; a warning, of a damaged file say, is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ScoreCache(folder).shelf({"layer": 1})


def check(shelf: Shelf, numbers: range) -> None:
    """What is there of `numbers` is right."""
    pairs = {("a", str(number)): number / 1e6 for number in numbers}
    assert shelf.scores(pairs).items() <= pairs.items()
    for (number, *_), vectors in shelf.vectors([(number,) * 3 for number in numbers]).items():
        assert np.array_equal(vectors, np.full((3, 64), number, np.float32))


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    firsts = (0, 0, 150, 300)  # two write the same, a third half of it again
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, tmp_path, str(first), "300"], stdout=subprocess.DEVNULL
        )
        for first in firsts
    ]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    shelf = opened(tmp_path)
    check(shelf, range(600))
    assert len(shelf.scores([("a", str(number)) for number in range(600)])) == 600
    assert len(shelf.vectors([(number,) * 3 for number in range(0, 600, 10)])) == 60
    assert not list(shelf.folder.glob(".*"))


def test_a_process_killed_at_any_time_leaves_what_is_right(tmp_path: Path) -> None:
    for lines in (1, 4, 9):
        first = 1000 * lines
        command = [sys.executable, "-c", WRITER, tmp_path, str(first), "1000000"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            for _ in range(lines):
                writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
            assert writer.wait(60) == -signal.SIGKILL
        shelf = opened(tmp_path)
        check(shelf, range(first, first + 1000))
        told = [("a", str(number)) for number in range(first, first + 10 * lines)]
        assert len(shelf.scores(told)) == 10 * lines  # all that it told of
        assert len(shelf.vectors([(number,) * 3 for number in range(first, first + 10 * lines, 10)])) == lines


@pytest.mark.parametrize("moment", ["half written", "written, not renamed", "merged, not cleared"])
def test_a_process_killed_at_a_bad_moment_leaves_what_is_right(tmp_path: Path, moment: str) -> None:
    code = subprocess.run([sys.executable, "-c", DYING, moment, tmp_path], check=False).returncode
    assert code == -signal.SIGKILL
    shelf = opened(tmp_path)
    check(shelf, range(100))
    known = shelf.scores([("a", str(number)) for number in range(3)])
    assert len(known) == (3 if moment == "merged, not cleared" else 2)
    left = list(shelf.folder.glob(".*.tmp"))
    assert len(left) == (0 if moment == "merged, not cleared" else 1)
    for path in left:  # an hour later
        os.utime(path, (0, 0))
    opened(tmp_path).add_scores({("a", "3"): 3 / 1e6})
    assert not list(shelf.folder.glob(".*.tmp"))
