"""Files of a load request: their places, and forbidden paths."""

import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import MonkeyPatch

from core.errors import CoreError, Kind
from core.repository import Override

CONFIG = '{"backend": "test"}'


def refusal(parameters):
    with pytest.raises(CoreError) as error:
        Override.of(parameters)
    assert error.value.kind is Kind.INVALID
    return error.value.message


def test_a_load_without_parameters_has_no_override():
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


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("1/a\nb", "cannot be shown"),
        ("1/\x7f", "cannot be shown"),
        ("1/\udc80", "cannot be shown"),
        ("1\\model.py", "no backslash"),
        ("a/" * 32 + "b", "it is 33 folders deep, there may be 32"),
        ("1/" + "x" * 256, "a name has more than 255 bytes"),
        ("1/" + "é" * 128, "a name has more than 255 bytes"),
    ],
)
def test_a_path_that_no_model_has_is_refused(path, expected):
    assert expected in refusal({"config": CONFIG, f"file:{path}": b""})


def test_a_file_that_is_given_twice_is_refused():
    message = refusal({"config": CONFIG, "file:1/a": b"1", "file:1/./a": b"2"})

    assert message == "Invalid file parameter 'file:1/./a', '1/a' is given twice."


def test_a_request_has_so_many_files_and_bytes_and_no_more():
    files = {f"file:1/{i}": b"" for i in range(1025)}
    assert refusal({"config": CONFIG, **files}) == "a load request has 1025 files, it may have 1024"

    with pytest.raises(CoreError, match="have 11 bytes, they may have 10"):
        Override.of({"config": CONFIG, "file:1/a": b"12345", "file:1/b": b"123456"}, 10)
    assert Override.of({"config": CONFIG, "file:1/a": b"0123456789"}, 10).byte_size == 10


def test_the_files_of_all_models_together_have_a_bound():
    def override():
        return Override.of({"config": CONFIG, "file:1/a": b"123456"}, 10)

    first = override().write()
    with pytest.raises(CoreError) as error:
        override().write()
    assert error.value.kind is Kind.UNAVAILABLE
    assert "take 6 bytes now, and 6 more would be over the 10" in error.value.message

    first.remove()
    first.remove()

    second = override().write()
    with pytest.raises(CoreError):
        override().write()
    second.remove()


NAMES = st.lists(
    st.sampled_from(
        ["..", ".", "", "a", "b", "1", "é", "a b", "...", "..a", "\\", "\0", "\n", "~", "-"]
    ),
    max_size=6,
).map("/".join)


@given(st.dictionaries(NAMES | st.text(max_size=20), st.binary(max_size=4), max_size=4))
def test_whatever_the_paths_are_files_appear_only_below_the_new_directory(files):
    parameters = {f"file:{path}": content for path, content in files.items()}
    with TemporaryDirectory() as place:
        root = Path(place)
        (root / "temporary").mkdir()
        with MonkeyPatch.context() as patch:
            patch.setattr("tempfile.tempdir", str(root / "temporary"))
            try:
                override = Override.of({"config": CONFIG, **parameters})
                directory = override.write()
            except (CoreError, OSError):
                assert [*root.rglob("*")] == [root / "temporary"]
                return
            found = {each for each in root.rglob("*") if each.is_file()}
            assert found == {directory.path / path for path in override.files}
            assert all(each.resolve().is_relative_to(directory.path.resolve()) for each in found)
            assert sorted(each.read_bytes() for each in found) == sorted(files.values())
            directory.remove()
            assert [*root.rglob("*")] == [root / "temporary"]


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
def test_a_refused_override_leaves_no_files(catalog, tmp_path, monkeypatch, config):
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
