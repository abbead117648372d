"""The errors for a model's file that is missing or cannot be read."""

import os

import pytest

from core.errors import CoreError, Kind
from core.model_file import check_readable, not_found


def test_the_entries_of_the_folder_are_listed_with_their_kind(tmp_path):
    (tmp_path / "model.onnx").mkdir()
    (tmp_path / "net.onnx").touch()
    (tmp_path / "old.onnx").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")

    error = not_found(tmp_path / "model.onnx", "m")

    assert error.kind is Kind.UNAVAILABLE
    assert f"unable to find '{tmp_path}/model.onnx' for model 'm'" in error.message
    assert (
        "has model.onnx (a folder), net.onnx, old.onnx (a link to nothing), pipe (no regular file)"
        in error.message
    )
    assert "(its folder has nothing)" in not_found(tmp_path / "no" / "x", "m").message


def test_a_pointer_of_git_lfs_is_recognised(tmp_path):
    file = tmp_path / "model.pt"
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n")

    with pytest.raises(CoreError, match=r"cannot load .*model.pt'.* with: git lfs pull"):
        check_readable(file, "m")


def test_an_unreadable_file_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("here")
    check_readable(tmp_path / "file", "m")

    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(CoreError, match="may not read it: Permission denied; check its owner"):
        check_readable(tmp_path / "file", "m")
