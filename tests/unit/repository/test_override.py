"""Files that come with a load request: where they go, and where they may not."""

import stat

import pytest

from core.errors import CoreError, Kind
from core.repository import Override

CONFIG = '{"backend": "test"}'


def refusal(parameters):
    with pytest.raises(CoreError) as error:
        Override.of(parameters)
    assert error.value.kind is Kind.INVALID
    return error.value.message


def test_a_load_without_parameters_overrides_nothing():
    assert Override.of({}) is None


def test_files_need_a_config():
    assert refusal({"file:1/model.py": b""}) == (
        "Load parameter 'config' must be specified for model file override."
    )


def test_the_config_must_be_text():
    expected = "Config parameter 'config' must have string type for its value."
    assert refusal({"config": 5}) == expected


def test_a_file_must_be_bytes():
    expected = "File parameter 'file:1/x' must have bytes type for its value."
    assert refusal({"config": CONFIG, "file:1/x": "text"}) == expected


def test_an_unknown_parameter_is_refused_by_name():
    assert refusal({"nothing": "x"}) == "unrecognized load parameter 'nothing'."


@pytest.mark.parametrize(
    "path",
    ["../x", "..", ".", "", "/", "/etc/x", "//etc/x", "a/../../x", "1/", "./../x", "nul\0"],
)
def test_a_path_that_leaves_the_model_is_refused(path):
    message = refusal({"config": CONFIG, f"file:{path}": b""})

    assert message.startswith(f"Invalid file parameter 'file:{path}' with normalized path '")
    assert message.endswith("' must stay within model directory.")


@pytest.mark.parametrize("files", [("a", "a/b"), ("a/b", "a"), ("a/b/c/d", "a/b")])
def test_a_file_cannot_be_a_directory_of_another(files):
    parameters = {f"file:{path}": b"" for path in files}

    assert "directory has been created as a file" in refusal({"config": CONFIG, **parameters})


def test_files_are_written_below_a_directory_that_only_this_user_may_enter():
    override = Override.of(
        {"config": CONFIG, "file:1/model.py": b"code", "file:a/./b//../c": memoryview(b"c")}
    )

    directory = override.write()

    assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700
    assert (directory.path / "1" / "model.py").read_bytes() == b"code"
    assert (directory.path / "a" / "c").read_bytes() == b"c"
    directory.remove()
    assert not directory.path.exists()


def test_files_make_a_model_that_is_on_no_disk(catalog):
    override = Override.of({"config": CONFIG, "file:3/model.txt": b"x"})

    source = catalog.survey("m", override)

    assert (source.name, source.overridden, list(source.versions)) == ("m", True, [3])
    assert (source.directory.path / "3" / "model.txt").read_bytes() == b"x"
    source.directory.remove()


def test_files_go_before_a_model_on_disk(folder, catalog):
    folder.model("m", versions=(1, 2))

    source = catalog.survey("m", Override.of({"config": CONFIG, "file:7/model.txt": b"x"}))

    assert list(source.versions) == [7]
    source.directory.remove()


@pytest.mark.parametrize("config", ["{", '{"name": "other"}', "{}"])
def test_a_refused_override_leaves_no_files_behind(catalog, tmp_path, monkeypatch, config):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())

    with pytest.raises(CoreError):
        catalog.survey("m", Override.of({"config": config, "file:1/x": b""}))

    assert set(tmp_path.iterdir()) == before


def test_a_file_name_that_the_disk_refuses_is_the_clients_mistake(catalog, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())

    with pytest.raises(CoreError) as error:
        catalog.survey("m", Override.of({"config": CONFIG, f"file:1/{'x' * 300}": b""}))

    assert error.value.kind is Kind.INVALID
    assert set(tmp_path.iterdir()) == before
