"""Which changes on disk are a change of the model."""

import os
import shutil

import pytest


@pytest.fixture
def model(folder):
    return folder.model("m", versions=(1, 2), files={"labels.txt": "a", "1/sub/weights": "1"})


def touch(file, ns=1):
    os.utime(file, ns=(ns, ns))


def stamps(catalog):
    source = catalog.survey("m")
    return source.versions[1], source.versions.get(2), source.shared, source.config_stamp


def changed(before, after):
    names = ("version 1", "version 2", "shared", "config")
    return [name for name, old, new in zip(names, before, after, strict=True) if old != new]


def test_unchanged_files_have_unchanged_stamps(catalog, model):
    assert stamps(catalog) == stamps(catalog)


def test_a_file_of_a_version_changes_that_version_alone(catalog, model):
    before = stamps(catalog)
    touch(model / "1" / "sub" / "weights")

    assert changed(before, stamps(catalog)) == ["version 1"]


def test_a_file_that_is_older_than_before_is_a_change_too(catalog, model):
    touch(model / "2" / "model.txt", 10**18)
    before = stamps(catalog)
    touch(model / "2" / "model.txt", 10**17)

    assert changed(before, stamps(catalog)) == ["version 2"]


def test_a_file_more_and_a_file_less_are_changes(catalog, model):
    before = stamps(catalog)
    (model / "2" / "more").write_text("")
    (model / "1" / "model.txt").unlink()

    assert changed(before, stamps(catalog)) == ["version 1", "version 2"]


def test_a_label_file_changes_the_stamp_of_the_shared_files(catalog, model):
    before = stamps(catalog)
    touch(model / "labels.txt")

    assert changed(before, stamps(catalog)) == ["shared"]


def test_the_configuration_has_a_separate_stamp(catalog, model):
    before = stamps(catalog)
    touch(model / "config.pbtxt")

    assert changed(before, stamps(catalog)) == ["config"]


def test_a_removed_version_is_not_listed(catalog, model):
    shutil.rmtree(model / "2")

    assert list(catalog.survey("m").versions) == [1]


def test_compiled_python_next_to_a_model_is_no_change(catalog, model):
    before = stamps(catalog)
    (model / "1" / "__pycache__").mkdir()
    (model / "1" / "__pycache__" / "model.pyc").write_text("x")

    assert changed(before, stamps(catalog)) == []


def test_linked_files_count(catalog, model, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "weights").write_text("1")
    (model / "1" / "linked").symlink_to(tmp_path / "data")
    before = stamps(catalog)
    touch(tmp_path / "data" / "weights")

    assert changed(before, stamps(catalog)) == ["version 1"]


def test_circular_and_broken_links_are_harmless(catalog, model):
    (model / "1" / "up").symlink_to(model)
    (model / "1" / "nothing").symlink_to(model / "absent")

    assert list(catalog.survey("m").versions) == [1, 2]


def test_a_model_may_be_a_link(catalog, folder, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "1").mkdir()
    (tmp_path / "real" / "config.pbtxt").write_text('backend: "test"')
    (folder.path / "m").symlink_to(tmp_path / "real")

    assert list(catalog.survey("m").versions) == [1]
