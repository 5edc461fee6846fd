"""The same examples come out of every format that holds them, as FEB prepares them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from caref.errors import CarefError, DataError
from caref.tasks import get_task
from caref.tasks.ecqa import join_positives
from caref.tasks.example import Example


def by_id(examples: tuple[Example, ...]) -> dict[str, Example]:
    return {example.id: example for example in examples}


def content(examples: tuple[Example, ...]) -> set[tuple[object, ...]]:
    return {(*example.fields.values(), example.answer, example.explanations) for example in examples}


def test_esnli_label_codings_agree(samples: Path) -> None:
    task = get_task("esnli")
    original = task.load(samples, "train", data_format="original-csv").examples
    assert original[0].id == "1000.jpg#0r1e"
    assert content(original) == content(task.load(samples, "train", data_format="ukplab").examples)
    assert original == task.load(samples, "train", data_format="ye_durrett").examples
    validation = task.load(samples, "validation", data_format="original-csv").examples
    assert [len(example.explanations) for example in validation] == [3] * 6
    tokenised = task.load(samples, "validation", data_format="las-tokenised").examples
    assert [example.answer for example in tokenised] == [example.answer for example in validation]
    assert tokenised[0].fields["premise"] == "A dog digs a hole on the beach ."


def test_esnli_originals_come_first(samples: Path, tmp_path: Path) -> None:
    task = get_task("esnli")
    folder = tmp_path / "esnli"
    shutil.copytree(samples / "esnli", folder)
    chosen = []
    for file in ("esnli_dev.csv", "ukplab/val_select.json", "ye_durrett/dev.json"):
        chosen.append(task.find(folder, "validation")[0].name)
        (folder / file).unlink()
    chosen.append(task.find(folder, "validation")[0].name)
    assert chosen == ["original-csv", "ukplab", "ye_durrett", "las-tokenised"]
    assert task.load(folder / "las", "validation").data_format == "las-tokenised"


def test_the_data_sets_own_folder_comes_before_its_parent(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "esnli").mkdir()
    for name, folder in (("esnli_dev.csv", tmp_path / "esnli"), ("esnli_test.csv", tmp_path)):
        shutil.copy(samples / "esnli" / name, folder / "esnli_dev.csv")
    assert get_task("esnli").load(tmp_path, "validation").files == (tmp_path / "esnli" / "esnli_dev.csv",)


def test_esnli_needs_both_training_files(samples: Path, tmp_path: Path) -> None:
    shutil.copy(samples / "esnli" / "esnli_train_1.csv", tmp_path)
    with pytest.raises(DataError) as raised:
        get_task("esnli").load(tmp_path, "train")
    message = str(raised.value)
    assert "which holds: esnli_train_1.csv" in message
    assert "original-csv: esnli_train_1.csv or dataset/esnli_train_1.csv and esnli_train_2.csv" in message
    assert "las-tokenised: has no train part" in message


def test_content_ids_do_not_depend_on_files(samples: Path, tmp_path: Path) -> None:
    task = get_task("esnli")
    folder = tmp_path / "esnli" / "ukplab" / "random" / "sub_0" / "512"
    folder.mkdir(parents=True)
    rows = [
        line
        for file in sorted((samples / "esnli" / "ukplab").rglob("train_select.json"))
        for line in file.read_text().splitlines(keepends=True)
    ]
    (folder / "train_select.json").write_text("".join(reversed(rows)))
    moved = task.load(tmp_path, "train").examples
    assert by_id(moved) == by_id(task.load(samples, "train", data_format="ukplab").examples)
    (folder / "train_select.json").write_text(rows[0] * 3)
    twice = [example.id for example in task.load(tmp_path, "train")]
    assert twice == [twice[0], f"{twice[0]}-2", f"{twice[0]}-3"]


def test_ecqa_formats_agree(samples: Path) -> None:
    task = get_task("ecqa")
    names = ("joined-csv", "release-jsonl", "positives-jsonl", "flan-tsv")
    pools = [by_id(task.load(samples, "train", data_format=name).examples) for name in names]
    assert all(pool == pools[0] for pool in pools)
    assert by_id(task.load(samples, "test", data_format="release-jsonl").examples) == by_id(
        task.load(samples, "test", data_format="joined-csv").examples
    )


def test_ecqa_parts_can_come_in_different_formats(samples: Path, tmp_path: Path) -> None:
    for folder in ("ecqa/derived", "commonsenseqa"):
        shutil.copytree(samples / folder, tmp_path / folder)
    shutil.copy(samples / "ecqa" / "cqa_data_val.csv", tmp_path / "ecqa")
    task = get_task("ecqa")
    assert task.load(tmp_path, "train").data_format == "positives-jsonl"
    assert task.load(tmp_path / "ecqa", "train").data_format == "positives-jsonl"
    assert task.load(tmp_path, "validation").data_format == "joined-csv"


@pytest.mark.parametrize(
    ("positives", "explanation"),
    [
        (["Beans grow well in the sun."], "Beans grow well in the sun."),
        (["Libraries have maps", "They lend books"], "Libraries have maps. They lend books."),
        (["it shines..."], "it shines.."),
        (["Libraries lend books.", ""], "Libraries lend books. ."),
        (["", " "], ""),
    ],
)
def test_join_positives(positives: list[str], explanation: str) -> None:
    assert join_positives(positives) == explanation


def test_comve_training_rows_become_three_examples(samples: Path) -> None:
    task = get_task("comve")
    train, validation = task.load(samples, "train").examples, task.load(samples, "validation").examples
    assert len(train) == 3 * len(validation) == 18
    assert [example.id for example in train[:4]] == ["0-0", "0-1", "0-2", "1-0"]
    assert train[0].answer == "choice1" and train[3].answer == "choice2"
    assert train[5].explanations == (" Gloves are for hands.",)
    assert [example.id for example in validation[:2]] == ["0", "1"]
    assert len(validation[0].explanations) == 3


def test_comve_folders_as_the_release_names_them(samples: Path, tmp_path: Path) -> None:
    for folder in ("Training  Data", "Dev Data", "Test Data"):
        copied = "_".join(folder.split())
        shutil.copytree(samples / "comve" / copied, tmp_path / "ALL data" / folder)
    task = get_task("comve")
    for part in task.parts:
        assert task.load(tmp_path, part).examples == task.load(samples, part).examples


def test_comve_is_joined_by_id(samples: Path, tmp_path: Path) -> None:
    shutil.copytree(samples / "comve", tmp_path / "comve")
    file = tmp_path / "comve" / "Training_Data" / "subtaskC_answers_all.csv"
    file.write_text("".join(reversed(file.read_text().splitlines(keepends=True))))
    task = get_task("comve")
    assert task.load(tmp_path, "train").examples == task.load(samples, "train").examples


def test_cos_e_versions_and_raw_files(samples: Path) -> None:
    three, five = get_task("cos_e"), get_task("cos_e_v1.11")
    assert {len(example.choices) for example in three.load(samples, "train")} == {3}
    assert {len(example.choices) for example in five.load(samples, "train")} == {5}
    processed = three.load(samples, "train").examples[0]
    raw = three.load(samples, "train", data_format="raw").examples[0]
    assert processed.explanations == ("a toaster heats bread",)
    assert raw.explanations == ("A TOASTER HEATS BREAD",)
    assert three.load(samples / "cos_e" / "v1.0", "train").examples[0] == processed
    assert five.load(samples / "cos_e" / "v1.11", "train").data_format == "processed"


def test_unknown_format_part_and_folder(samples: Path) -> None:
    task = get_task("cos_e")
    with pytest.raises(CarefError, match="no data format 'csv'; there are: processed, raw"):
        task.load(samples, "train", data_format="csv")
    with pytest.raises(DataError, match="no test part with explanations; it has: train, validation"):
        task.load(samples, "test")
    with pytest.raises(DataError, match="no data folder"):
        task.load(samples / "absent", "train")
