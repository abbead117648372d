"""Private folders of core: their permissions, and their removal."""

import errno
import multiprocessing
import os
import stat
import subprocess
import sys

import pytest

from core.repository import private
from core.repository.private import PREFIX, PrivateDirectory


@pytest.fixture(autouse=True)
def never_looked(monkeypatch):
    """No place has been looked at for what others left."""
    monkeypatch.setattr(private, "_swept", set())


def folders(tmp_path):
    return sorted(tmp_path.glob(f"{PREFIX}*"))


def test_only_this_user_may_enter(tmp_path):
    made = PrivateDirectory(tmp_path)

    assert [stat.S_IMODE(each.stat().st_mode) for each in (made.path, made.path.parent)] == [
        0o700
    ] * 2
    made.remove()


def test_it_is_removed_once_with_all_that_is_in_it(tmp_path):
    made = PrivateDirectory(tmp_path)
    (made.path / "a").mkdir()
    (made.path / "a" / "b").write_text("x")

    made.remove()
    made.remove()

    assert folders(tmp_path) == []


def test_one_that_is_in_use_is_not_taken_for_a_left_one(tmp_path, monkeypatch):
    first = PrivateDirectory(tmp_path)
    monkeypatch.setattr(private, "_swept", set())

    second = PrivateDirectory(tmp_path)

    assert first.path.is_dir()
    first.remove()
    second.remove()


CHILD = """
import os, sys
from pathlib import Path
from core.repository.private import PrivateDirectory
(PrivateDirectory(Path(sys.argv[1])).path / "secret").write_text("x")
if sys.argv[2] == "killed":
    os.kill(os.getpid(), 9)
if sys.argv[2] == "raises":
    raise SystemExit("the end")
"""


def run(tmp_path, end):
    subprocess.run(
        [sys.executable, "-c", CHILD, tmp_path, end], stderr=subprocess.DEVNULL, check=False
    )


@pytest.mark.parametrize("end", ["returns", "raises"])
def test_the_end_of_the_process_removes_it(tmp_path, end):
    run(tmp_path, end)

    assert folders(tmp_path) == []


def test_that_of_a_killed_process_is_removed_by_the_next(tmp_path):
    run(tmp_path, "killed")
    assert len(folders(tmp_path)) == 1

    made = PrivateDirectory(tmp_path)

    assert folders(tmp_path) == [made.path.parent]
    made.remove()


def test_a_file_system_without_locks_gets_one_folder_and_loses_none(tmp_path, monkeypatch):
    """NFS locks only files that are open for writing, which a folder never is."""

    def refuse(*_):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    left = tmp_path / f"{PREFIX}of-another-process"
    left.mkdir()
    monkeypatch.setattr(private.fcntl, "flock", refuse)

    made = PrivateDirectory(tmp_path)

    assert folders(tmp_path) == sorted([left, made.path.parent])
    made.remove()
    assert folders(tmp_path) == [left]


def test_files_and_links_with_the_prefix_are_not_removed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"{PREFIX}file").write_text("x")
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")

    PrivateDirectory(tmp_path).remove()

    assert len(folders(tmp_path)) == 2
    assert (tmp_path / "elsewhere").is_dir()


def _end():
    private.leave_nothing()
    os._exit(0)


def test_a_forked_child_does_not_remove_folders_of_its_parent(tmp_path):
    made = PrivateDirectory(tmp_path)

    child = multiprocessing.get_context("fork").Process(target=_end)
    child.start()
    child.join(30)

    assert made.path.is_dir()
    made.remove()
