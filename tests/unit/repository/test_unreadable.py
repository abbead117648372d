"""Folders that cannot be read: the model concerned gets the error, by name, and the others are found."""

import os
import shutil
import subprocess

import pytest

from core.errors import CoreError, Kind
from core.repository import FolderRepository

DEEP = 1_200  # folders within each other, more than Python calls


@pytest.fixture(autouse=True)
def removed(folder):
    """Remove the folders here: those that are deep or long make it hard for others."""
    yield
    subprocess.run(["rm", "-rf", str(folder.path)], check=True)


def nested(folder, name, count):
    """Make folders within each other whose whole path no call would take."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(count):
        os.mkdir(name, dir_fd=at)
        inner = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)


def looping(folder):
    (folder.path / "m").symlink_to("m")


def through_a_file(folder):
    (folder.path / "m").symlink_to(folder.path / "good" / "config.pbtxt" / "m")


def looping_version(folder):
    folder.model("m", versions=(2,))
    (folder.path / "m" / "1").symlink_to("1")


def looping_configuration(folder):
    (folder.model("m") / "config.pbtxt").unlink()
    (folder.path / "m" / "config.pbtxt").symlink_to("config.pbtxt")


def configuration_in_a_pipe(folder):
    (folder.model("m") / "config.pbtxt").unlink()
    os.mkfifo(folder.path / "m" / "config.pbtxt")


def too_long(folder):
    nested(folder.model("m") / "1", "x" * 250, 20)


def too_deep(folder):
    nested(folder.model("m") / "1", "x", DEEP)


@pytest.mark.parametrize(
    ("make", "place", "reason"),
    [
        (looping, "m", "Too many levels of symbolic links"),
        (through_a_file, "m", "Not a directory"),
        (looping_version, "m/1", "Too many levels of symbolic links"),
        (looping_configuration, "m/config.pbtxt", "Too many levels of symbolic links"),
        (configuration_in_a_pipe, "m/config.pbtxt", "it is not a file"),
        (too_long, "m/1/xxx", "File name too long"),
        (too_deep, "", "maximum recursion depth"),
    ],
)
def test_the_error_names_the_model_and_others_are_found(folder, catalog, make, place, reason):
    folder.model("good")
    make(folder)

    found = catalog.survey_all()

    assert list(found) == ["good", "m"]
    assert list(found["good"].versions) == [1]
    error = found["m"]
    assert isinstance(error, CoreError) and error.kind is Kind.INTERNAL
    assert error.message.startswith("failed to read ") and reason in error.message
    assert str(folder.path / place) in error.message
    with pytest.raises(CoreError, match=reason):
        catalog.survey("m")


@pytest.mark.parametrize("name", ["m", "m/1"])
def test_a_folder_that_may_not_be_read_is_such_an_error(folder, catalog, monkeypatch, name):
    """The tests may run as a user who may read everything."""
    folder.model("good")
    folder.model("m")
    closed, scandir = str(folder.path / name), os.scandir

    def refusing(path):
        if str(path) == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr("core.repository.folder.os.scandir", refusing)
    found = catalog.survey_all()

    assert list(found["good"].versions) == [1]
    assert f"Permission denied: '{closed}'" in found["m"].message


@pytest.mark.parametrize(
    ("step", "expected"),
    [("listing", "there is no folder 'm' in"), ("read_text", "No such file or directory")],
)
def test_a_folder_that_vanishes_during_a_look(folder, catalog, monkeypatch, step, expected):
    folder.model("good")
    folder.model("m")
    given = getattr(FolderRepository, step)

    def vanishing(repository, name, *more):
        if name == "m":
            shutil.rmtree(folder.path / "m", ignore_errors=True)
        return given(repository, name, *more)

    monkeypatch.setattr(FolderRepository, step, vanishing)
    found = catalog.survey_all()

    assert list(found["good"].versions) == [1]
    assert expected in found["m"].message


def test_a_link_in_a_version_that_leads_nowhere_does_not_hinder(folder, catalog):
    (folder.model("m") / "1" / "notes").symlink_to("notes")

    assert list(catalog.survey("m").versions) == [1]


def test_a_file_in_one_repository_does_not_hide_a_model_in_another(folder, other):
    from core.repository import Catalog

    folder.path.mkdir(exist_ok=True)
    (folder.path / "m").write_text("a file")
    other.model("m")
    catalog = Catalog([FolderRepository(str(each.path)) for each in (folder, other)])

    assert list(catalog.survey("m").versions) == [1]
