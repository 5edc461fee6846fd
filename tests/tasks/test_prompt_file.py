from __future__ import annotations

from pathlib import Path

import pytest

from caref.errors import CarefError
from caref.tasks.prompt_file import load_prompt


def test_prompt_from_yaml(tmp_path: Path) -> None:
    file = tmp_path / "terse.yaml"
    file.write_text("input: '{hypothesis} / {premise}'\nseparator: ' since '\ncontext: premise\n")
    prompt = load_prompt(file)
    assert prompt.name == "terse"
    assert prompt.target == "{answer} since {explanation}"
    assert prompt.context == "premise"
    file.write_text("name: mine\ninput: '{premise}'\nchat: true\nsystem: Be brief.\n")
    assert (load_prompt(file).name, load_prompt(file).system) == ("mine", "Be brief.")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("inputs: '{premise}'", "missing key 'input'"),
        ("input: '{premise}'\ntemplate: x", "unknown key 'template'; there are: input, target"),
        ("input: '{answer}'", "must not name the answer"),
        ("input: {premise}", "input: Input should be a valid string"),
        ("- a list", "expected keys and values, got list"),
        ("input: 'open", "not YAML"),
    ],
)
def test_bad_prompt_files(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(content)
    with pytest.raises(CarefError) as raised:
        load_prompt(file)
    assert str(raised.value).startswith(f"{file}: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_absent_prompt_file(tmp_path: Path) -> None:
    with pytest.raises(CarefError, match=r"cannot read .*: No such file"):
        load_prompt(tmp_path / "absent.yaml")
