"""What is wrong with folders of models, and the command that mends it, which is run here."""

import subprocess

import pytest

from core import plugins
from frontends.commands.layout import loose, mended


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("model.onnx", "'model.onnx' but no folder of a version"),
        ("iris.onnx", "'iris.onnx' but no folder of a version"),
        ("v1/model.onnx", "'v1' is no version, expected a number without v and zeros before it"),
        ("01/model.onnx", "'01' is no version, expected a number without v and zeros before it"),
        ("1/iris.onnx", "version 1 has 'iris.onnx', expected 'model.onnx'"),
    ],
)
def test_a_wrong_layout_comes_with_a_command_that_mends_it(tmp_path, file, said):
    folder = tmp_path / "my models" / "iris"
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).touch()

    found, _, command = mended(folder, plugins.formats()).partition("; try: ")
    subprocess.run(command, shell=True, check=True)

    assert found == said
    assert (folder / "1" / "model.onnx").is_file()
    assert mended(folder, plugins.formats()) == ""


def test_a_folder_without_a_model_says_what_it_has(tmp_path):
    (tmp_path / "README.md").touch()

    text = mended(tmp_path, plugins.formats())

    assert text.startswith("no folder of a version, such as 1 (found README.md); try: mkdir ")


def test_texts_beside_a_model_are_not_taken_for_one(tmp_path):
    for name in ("labels.txt", "notes.txt"):
        (tmp_path / name).touch()

    assert "no folder of a version, such as 1" in mended(tmp_path, plugins.formats())


def test_a_file_in_place_of_a_folder_of_a_model(tmp_path):
    (tmp_path / "iris.onnx").touch()

    text = loose(tmp_path, plugins.formats())

    assert text == (
        f"'iris.onnx' is a file, and each model has a folder; try: core init {tmp_path} {tmp_path}/iris.onnx"
    )


def test_an_empty_repository_says_so(tmp_path):
    assert "it holds no folder of a model (found nothing)" in loose(tmp_path, plugins.formats())
