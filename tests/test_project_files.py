"""The files around the package: that they agree with each other and with it."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from pathlib import Path, PurePosixPath

import pytest
import typer.main
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import caref
from caref.cli import build
from caref.tasks.custom import TaskKeys

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def commands(script: str) -> list[str]:
    return [words for line in script.splitlines() if (words := " ".join(shlex.split(line, comments=True)))]


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pins}


def requirements() -> list[Requirement]:
    extras = PROJECT["project"]["optional-dependencies"].values()
    named = [*PROJECT["project"]["dependencies"], *(line for extra in extras for line in extra)]
    return [requirement for line in named if (requirement := Requirement(line)).name != "caref"]


def test_ci_runs_the_commands_that_the_readme_begins_with() -> None:
    first = commands(blocks("bash")[0])
    ci = commands((ROOT / ".ci" / "run").read_text(encoding="utf-8"))

    assert first == ["make quickstart", "make test"]
    assert [command for command in ci if command.startswith("make")] == ["make test", "make quickstart"]
    assert README.startswith("# caref\n\n```bash\n"), "the README does not begin with its commands"


def test_every_make_command_that_is_named_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    scripts = [*blocks("bash"), *blocks("bash", contributing), *re.findall("`(.+?)`", contributing)]
    named = {target for script in scripts for target in re.findall(r"^make ([a-z-]+)", script, re.MULTILINE)}

    assert {"test", "quickstart", "check"} <= named
    assert named <= targets


def test_every_dependency_is_pinned_within_its_range() -> None:
    pins = pinned()

    assert pins["torch"] == "2.13.0"
    for requirement in requirements():
        version = pins.get(canonicalize_name(requirement.name))
        assert version, f"{requirement.name} is not in constraints.txt; run: make constraints"
        assert requirement.specifier.contains(version), f"{requirement} is pinned to {version}"


def test_pins_are_exact_and_without_local_versions() -> None:
    for name, version in pinned().items():
        assert re.fullmatch(r"\d[\w.]*", version), f"{name}=={version}"


def test_torch_and_triton_are_those_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in ("torch", "triton"):
        assert f"\n{name.upper()} := {pinned()[name]}\n" in makefile


def test_versions_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "caref.__version__"}
    assert str(citation["version"]) == caref.__version__
    assert re.search(r"^## \[(.+?)\]", changelog, re.MULTILINE).group(1) == caref.__version__


def test_licence_is_the_one_that_is_named() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))

    assert PROJECT["project"]["license"] == citation["license"] == "Apache-2.0"
    assert "Apache License" in licence
    assert "Version 2.0, January 2004" in licence


def test_the_wheel_holds_every_data_file() -> None:
    package = ROOT / "src" / "caref"
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["caref"]
    data = [
        path
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc") and not path.name.startswith(".")
    ]

    assert {"world.yaml", "page.html", "py.typed", "model.safetensors"} <= {path.name for path in data}
    for path in data:
        name = path.relative_to(package)
        matching = [pattern for pattern in patterns if name.match(pattern)]
        assert matching, f"{path} is not in package-data"
        in_package = (path.parent / "__init__.py").exists()
        named = any(pattern.startswith(name.parent.as_posix()) for pattern in matching)
        assert in_package or named, f"{path.parent} is no package: its data is left out"


def test_no_file_names_a_home_folder() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    home = re.compile(rb"/(?:home|Users|root)/[A-Za-z0-9_.-]")
    paths = [ROOT / PurePosixPath(name) for name in listed.stdout.split("\0") if name]

    assert [path for path in paths if path.is_file() and home.search(path.read_bytes())] == []


def test_readme_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)", README)

    assert links
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_readme_yaml_describes_a_task() -> None:
    (text,) = blocks("yaml")
    example = ROOT / "examples" / "own-task" / "everyday.yaml"

    keys = TaskKeys.model_validate(yaml.safe_load(text))
    assert keys.words == TaskKeys.model_validate(yaml.safe_load(example.read_text("utf-8"))).words


def test_readme_commands_are_understood() -> None:
    lines = [
        command for block in blocks("bash") for command in commands(block) if command.startswith("caref ")
    ]

    assert {line.split()[1] for line in lines} == {
        "quickstart", "run", "table", "data", "predict", "export", "push"
    }  # fmt: skip
    for line in lines:
        _, name, *arguments = shlex.split(line)
        command = typer.main.get_command(build([name])).commands[name]
        command.make_context(name, arguments)  # raises on an unknown flag or a value of the wrong kind


def test_readme_python_is_valid() -> None:
    for text in blocks("python"):
        compile(text, "README.md", "exec")
