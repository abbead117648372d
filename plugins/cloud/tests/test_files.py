"""A listing becomes paths that stay below a folder, and stamps that change."""

from datetime import datetime, timezone
from types import SimpleNamespace

import pytest
from core_cloud.files import file_of, is_path, tree_of
from hypothesis import given
from hypothesis import strategies as some

TIME = datetime(2026, 1, 2, tzinfo=timezone.utc)


def entry(**more):
    return {"size": 3, "type": "file", "LastModified": TIME, **more}


def test_paths_are_relative_to_the_listed_folder():
    tree = tree_of({"b/models/m/1/f": entry(), "b/models/top": entry()}, "b/models")

    assert set(tree.files) == {"m/1/f", "top"}
    assert tree.folders == {"m/", "m/1/"}


def test_each_model_has_its_part():
    tree = tree_of({"/m/1/f": entry(), "/m/c": entry(), "/n/": entry(size=0)}, "")

    parts = tree.by_name()

    assert set(parts["m"].files) == {"1/f", "c"}
    assert set(parts["m"].listing()) == {"1/", "1/f", "c"}
    assert parts["n"].listing() == {}


@pytest.mark.parametrize(
    "name",
    ["../x", "m/../../x", "m//x", "m/./x", "/x", "m\\x", "m/\0", "m/a\nb", "m/" + "x" * 256, ".."],
)
def test_invalid_names_are_skipped_and_logged(name):
    tree = tree_of({f"b/{name}": entry(), "b/m/x": entry()}, "b")

    assert set(tree.files) == {"m/x"}
    assert tree.odd == (f"b/{name}",)


@given(some.lists(some.sampled_from(["..", ".", "", "a", "/", "\0", "é", " ", "~"]), max_size=6))
def test_a_path_never_leaves_its_folder(parts):
    import posixpath

    path = "/".join(parts)

    if is_path(path):
        assert posixpath.normpath(f"/root/folder/{path}") == f"/root/folder/{path}"


def test_an_empty_object_may_stand_for_a_folder():
    marked = tree_of({"b/m/1/": entry(size=0), "b/n/1": entry(size=0), "b/m": entry(size=0)}, "b")

    assert marked.folders == {"m/", "m/1/", "n/", "n/1/"}
    assert not marked.files


def test_a_file_that_is_a_folder_too_is_left_out():
    tree = tree_of({"b/m": entry(), "b/m/x": entry()}, "b")

    assert set(tree.files) == {"m/x"}
    assert tree.odd == ("b/m",)


def test_caches_of_python_do_not_count():
    tree = tree_of({"b/1/model.py": entry(), "b/1/__pycache__/model.pyc": entry()}, "b")

    assert set(tree.listing()) == {"1/", "1/model.py"}


S3 = {"ETag": '"9e107d9d372bb6826bd81d3542a419d6"'}
PARTS = {"ETag": '"9e107d9d372bb6826bd81d3542a419d6-2"'}
GOOGLE = {"md5Hash": "nhB9nTcrtoJr2B01QqQZ1g==", "crc32c": "ImIEBA==", "generation": "1"}
AZURE = {
    "etag": '"0x8D"',
    "content_settings": SimpleNamespace(
        content_md5=bytearray.fromhex("9e107d9d372bb6826bd81d3542a419d6")
    ),
}


@pytest.mark.parametrize(("said", "sure"), [(S3, False), (GOOGLE, True), (AZURE, True)])
def test_the_md5_of_a_store_is_known(said, sure):
    file = file_of("b/f", entry(**said))

    assert (file.md5, file.sure) == ("9e107d9d372bb6826bd81d3542a419d6", sure)


def test_a_multipart_object_has_no_md5():
    assert file_of("b/f", entry(**PARTS)).md5 == ""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (S3, {**S3, "LastModified": TIME.replace(year=2027)}),
        (GOOGLE, {**GOOGLE, "generation": "2"}),
        (AZURE, {**AZURE, "etag": '"0x8E"'}),
    ],
)
def test_the_same_content_again_is_another_upload_of_the_same_content(first, second):
    one, two = file_of("b/f", entry(**first)), file_of("b/f", entry(**second))

    assert one.stamp != two.stamp
    assert one.content == two.content


@pytest.mark.parametrize("said", [S3, PARTS, {}, {"etag": '"1"'}, {"crc32c": "ImIEBA=="}])
def test_another_size_is_another_content(said):
    assert file_of("b/f", entry(**said)).content != file_of("b/f", entry(**said, size=4)).content


def test_a_store_without_times_and_tags_is_refused():
    with pytest.raises(ValueError, match="by which a change could be seen"):
        file_of("b/f", {"size": 3, "type": "file"})
    with pytest.raises(ValueError, match="how large"):
        file_of("b/f", entry(size=None))
