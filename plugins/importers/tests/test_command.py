"""Sources, names and targets: what the command says about those that do not fit."""

import shutil
from pathlib import Path

import import_sources as archives
import pytest

from core.plugins.commands import run_command


def test_the_command_is_installed(capsys):
    with pytest.raises(SystemExit) as ended:
        run_command("import", ["--help"])
    assert ended.value.code == 0
    assert "SOURCE" in capsys.readouterr().out


def test_a_source_that_does_not_exist(refused, tmp_path):
    assert "there is no file or folder" in refused(tmp_path / "absent.mar")


def test_a_source_of_no_known_kind(refused, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty").mkdir()
    assert "is a file of no known kind; expected a .mar archive" in refused(tmp_path / "notes.txt")
    assert "is a folder of no known kind; expected a .mar archive" in refused(tmp_path / "empty")


@pytest.mark.parametrize("url", ["models:/iris/1", "runs:/abc/model", "s3://bucket/model"])
def test_urls_are_downloaded_first(refused, url):
    assert "is a URL; download the model first" in refused(url)


def test_the_folder_above_a_model_names_the_model(refused, tmp_path):
    archives.mlmodel(tmp_path / "run" / "model", "  python_function: {}\n")
    assert f"'{tmp_path / 'run' / 'model'}' is one of MLflow" in refused(tmp_path / "run")


def test_an_existing_model_stays_unless_forced(imported, refused, tmp_path, repository):
    source = archives.words(tmp_path / "words.mar")
    imported(source)
    (repository / "words" / "mine").write_text("")

    assert "exists already; --force replaces it" in refused(source)
    assert (repository / "words" / "mine").exists()
    imported(source, "--name", "other")
    imported(source, "--force")

    assert sorted(each.name for each in repository.iterdir()) == ["other", "words"]
    assert not (repository / "words" / "mine").exists()


@pytest.mark.parametrize("name", ["../x", "a/b", ".."])
def test_a_name_that_is_no_folder(refused, tmp_path, name):
    source = archives.words(tmp_path / "words.mar")
    assert "invalid model name" in refused(source, "--name", name)


def test_a_repository_that_is_a_file_or_a_model(refused, tmp_path, repository):
    source = archives.words(tmp_path / "words.mar")
    repository.write_text("")
    assert "is a file; REPOSITORY is the folder" in refused(source)
    repository.unlink()
    repository.mkdir()
    (repository / "config.pbtxt").write_text("")
    assert "is a model, it has a config.pbtxt" in refused(source)


@pytest.mark.parametrize("text", ["x", "x:FP31", "x:FP32[0]", "x:FP32[a]", ":FP32"])
def test_a_tensor_of_another_form(refused, tmp_path, text):
    assert f"'{text}'" in refused(archives.words(tmp_path / "words.mar"), "--input", text)


def test_a_model_that_cannot_be_replaced_stays(
    imported, refused, tmp_path, repository, monkeypatch
):
    source = archives.words(tmp_path / "words.mar")
    imported(source)
    (repository / "words" / "mine").write_text("")
    move = shutil.move

    def full(what, where):
        if Path(where) == repository / "words" and Path(what).name != "old":
            Path(where).mkdir()  # as far as a full disk let it come
            raise OSError("no space left on device")
        return move(what, where)

    monkeypatch.setattr(shutil, "move", full)

    assert "no space left on device" in refused(source, "--force")
    assert (repository / "words" / "mine").exists()
