"""The command line as a user drives it, in this process where nothing else is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
OWN_DATA = TESTS / "experiments" / "data"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    def mistake(self) -> str:
        """The one line that tells of a mistake; fails for anything but exit code 2 and one line."""
        assert self.code == 2, self
        assert "Traceback" not in self.err, self.err
        lines = [line for line in self.err.splitlines() if line != "reading data, model and metrics"]
        assert len(lines) == 1, lines
        assert lines[0].startswith("caref: ")
        assert self.out == ""
        return lines[0].removeprefix("caref: ")


Caref = Callable[..., Ended]


@pytest.fixture(autouse=True)
def _offline_and_narrow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import torch

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("CAREF_DEBUG", "")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def caref(capsys: pytest.CaptureFixture[str]) -> Caref:
    """Run the command line in this process."""
    from caref.cli import main

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        told = capsys.readouterr()
        return Ended(int(ended.value.code or 0), told.out, told.err)

    return run


@pytest.fixture(scope="session")
def own_data() -> Path:
    """The folder of ``red.yaml``, a task of ours, and ``short.yaml``, a prompt."""
    return OWN_DATA


@pytest.fixture(scope="session")
def samples() -> Path:
    return TESTS / "data" / "samples"


@pytest.fixture(scope="session")
def small(tiny_t5: Path) -> list[str]:
    """The flags of a run that takes a second."""
    return [
        "--task", str(OWN_DATA / "red.yaml"), "--model", str(tiny_t5), "--metrics", "accuracy,broken",
        "--shots", "8", "--eval-size", "6", "--epochs", "2", "--max-new-tokens", "8",
    ]  # fmt: skip


@pytest.fixture(scope="session")
def runs(small: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two complete runs. Tests change nothing in it."""
    from caref.cli import main

    out = tmp_path_factory.mktemp("cli") / "runs"
    with pytest.raises(SystemExit) as ended:
        main(["run", *small, "--splits", "0-1", "--out", str(out)])
    assert not ended.value.code
    return out


@pytest.fixture(scope="session")
def one_run(runs: Path) -> Path:
    return sorted(runs.iterdir())[0]
