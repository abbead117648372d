"""--write mends what has one right answer, and keeps comments and layout."""

import os

import pytest
from repository_check.broken_models import BROKEN, ONNX, X, Y, onnx_model, write

from frontends.commands.check.mending import mended, replace_list
from frontends.commands.check.places.tree import tree_of, unquoted

MENDED = (
    "byte_order_mark", "misspelt_field", "number_in_quotes", "text_without_quotes", "wrong_name",
    "unknown_backend", "other_datatype", "other_dims", "other_width", "other_features",
)  # fmt: skip


def test_comments_and_layout_stay(tmp_path, check):
    text = (
        "# The model of the shop.\n"
        'name: "digits"  # as in the catalogue\n'
        "max_batch_sise: 4 # rows\n"
        'input [\n  {\n    name: "x"\n    data_type: TYPE_INT64  # floats\n    dims: [ 7 ]\n  }\n]\n'
        'output [ { name: "y", data_type: FP32, dims: [ 4 ] } ]\n'
    )
    write(tmp_path / "shop", onnx_model(text))

    status, out = check(tmp_path, "--write")

    assert status == 0
    assert (tmp_path / "shop" / "config.pbtxt").read_text() == (
        "# The model of the shop.\n"
        'name: "shop"  # as in the catalogue\n'
        "max_batch_size: 4 # rows\n"
        'input [\n  {\n    name: "x"\n    data_type: TYPE_FP32  # floats\n    dims: [ 4 ]\n  }\n]\n'
        'output [ { name: "y", data_type: TYPE_FP32, dims: [ 4 ] } ]\n'
    )
    assert '\n-name: "digits"  # as in the catalogue\n' in out
    assert '\n+name: "shop"  # as in the catalogue\n' in out
    assert "\nshop  mended\n" in out
    assert out.splitlines()[-1].endswith("; 5 mended")
    assert check(tmp_path) == (0, "shop  ok\n1 model, 0 failed: 0 errors, 0 warnings, 0 notes\n")


def test_the_fields_behind_a_byte_order_mark_are_checked(tmp_path, check):
    write(
        tmp_path / "m",
        onnx_model("\ufeff" + ONNX.replace("max_batch_size", "max_batch_sise") + X + Y),
    )

    status, out = check(tmp_path, "--write")

    assert status == 0 and out.splitlines()[-1].endswith("; 2 mended")
    assert (tmp_path / "m" / "config.pbtxt").read_bytes() == (ONNX + X + Y).encode()


@pytest.mark.parametrize("name", MENDED)
def test_a_mended_model_has_no_errors(name, tmp_path, check):
    write(tmp_path / name, BROKEN[name].files)
    assert check(tmp_path)[0] == 1

    assert check(tmp_path, "--write")[0] == 0
    assert check(tmp_path)[0] == 0


def test_a_misspelt_file_of_labels_and_a_misspelt_model_of_a_step_are_mended(tmp_path, check):
    output = Y.replace(" }", ' label_filename: "lables.txt" }')
    write(tmp_path / "digits", onnx_model(ONNX + X + output, **{"labels.txt": "a\nb\nc\nd\n"}))
    write(
        tmp_path / "chain",
        {
            "config.pbtxt": 'platform: "ensemble"\nmax_batch_size: 4\n'
            + X
            + Y
            + 'ensemble_scheduling { step { model_name: "digitz" input_map { key: "x" value: "x" } '
            'output_map { key: "y" value: "y" } } }\n',
            "1/": "",
        },
    )

    assert check(tmp_path, "--write")[0] == 0

    assert 'label_filename: "labels.txt"' in (tmp_path / "digits" / "config.pbtxt").read_text()
    assert 'model_name: "digits"' in (tmp_path / "chain" / "config.pbtxt").read_text()
    assert check(tmp_path)[0] == 0


def test_what_has_several_answers_is_not_written(tmp_path, check):
    text = ONNX + X.replace("TYPE_FP32", "TYPE_FP33") + Y
    write(tmp_path / "digits", onnx_model(text))

    assert check(tmp_path, "--write")[0] == 1

    assert (tmp_path / "digits" / "config.pbtxt").read_text() == text


def test_without_write_nothing_changes(tmp_path, check):
    write(tmp_path / "digits", onnx_model("max_batch_sise: 4\n" + X + Y))

    _, out = check(tmp_path)

    assert "(--write mends it)" in out
    assert (tmp_path / "digits" / "config.pbtxt").read_text().startswith("max_batch_sise")


def test_a_file_that_cannot_be_written_is_an_error(tmp_path, check, monkeypatch):
    from pathlib import Path

    write(tmp_path / "digits", onnx_model("max_batch_sise: 4\n" + X + Y))

    def refuse(self, target):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    status, out = check(tmp_path, "--write")

    assert status == 1
    assert "mended" not in out
    assert (tmp_path / "digits" / "config.pbtxt").read_text().startswith("max_batch_sise")
    assert sorted(each.name for each in (tmp_path / "digits").iterdir()) == ["1", "config.pbtxt"]


def test_a_warning_that_cannot_be_mended_fails_too(tmp_path, monkeypatch, check):
    from frontends.commands.check import mending, survey
    from frontends.commands.check.finding import Edit, Finding

    write(tmp_path / "digits", onnx_model())
    original = survey.check_model

    def check_model(folder, root, settings):
        model = original(folder, root, settings)
        file = model.report.config_file
        model.report.add(Finding("warning", "syntax", "w", file, edit=Edit(0, 0, "# a\n")))
        return model

    def refuse(file, content):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(survey, "check_model", check_model)
    monkeypatch.setattr(mending, "_replace", refuse)

    assert check(tmp_path)[0] == 0
    assert check(tmp_path, "--write")[0] == 1


def test_a_link_in_the_place_of_the_new_file_is_not_followed(tmp_path, check):
    folder = write(tmp_path / "models" / "digits", onnx_model("max_batch_sise: 4\n" + X + Y))
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (folder / f".config.pbtxt.{os.getpid()}").symlink_to(victim)

    assert check(tmp_path / "models", "--write")[0] == 1

    assert victim.read_text() == "mine"
    assert (folder / f".config.pbtxt.{os.getpid()}").is_symlink()
    assert (folder / "config.pbtxt").read_text().startswith("max_batch_sise")


def test_the_mode_of_the_file_stays(tmp_path, check):
    folder = write(tmp_path / "digits", onnx_model("max_batch_sise: 4\n" + X + Y))
    (folder / "config.pbtxt").chmod(0o664)

    assert check(tmp_path, "--write")[0] == 0

    assert (folder / "config.pbtxt").stat().st_mode & 0o7777 == 0o664


@pytest.fixture
def overlapping(tmp_path, monkeypatch):
    """A repository with a model that has two edits, of which the second overlaps the first."""
    from frontends.commands.check import survey
    from frontends.commands.check.finding import Edit, Finding

    write(tmp_path / "digits", onnx_model())
    original = survey.check_model

    def check_model(folder, root, settings):
        model = original(folder, root, settings)
        for name, edit in (("first", Edit(0, 4, "# a\n")), ("second", Edit(2, 6, "# b\n"))):
            file = model.report.config_file
            model.report.add(Finding("error", "syntax", name, file, 1, 1, edit=edit))
        return model

    monkeypatch.setattr(survey, "check_model", check_model)
    return tmp_path


def test_an_edit_that_overlaps_another_is_not_mended(overlapping, check):
    status, out = check(overlapping, "--write")

    assert status == 1
    assert "first [syntax]  (mended)\n" in out
    assert "second [syntax]  (--write mends it)\n" in out
    assert "\ndigits  failed\n" in out
    assert out.splitlines()[-1].endswith("; 1 mended; --write mends 1")


def test_json_says_which_findings_are_mended(overlapping, findings):
    found = {each["text"]: each.get("mended", False) for each in findings(overlapping, "--write")}

    assert found == {"first": True, "second": False}


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        (
            "a: 1\ndims: 3 # rows\ndims: 4 # width\n",
            [5, 6],
            "a: 1\ndims: 5 # rows\ndims: 6 # width\n",
        ),
        ("dims: [\n  3, # rows\n  4\n]\n", [5, 6], "dims: [\n  5, # rows\n  6\n]\n"),
        ("dims: 3\nb: 1\ndims: 4\n", [5, 6], "dims: 5\nb: 1\ndims: 6\n"),
        ("  dims: 3 # rows\n  dims: 4 # width\n", [5], "  # rows\n  dims: [ 5 ] # width\n"),
        ("dims: [ 3, # rows\n 4 ] b: 1\n", [5], "# rows\ndims: [ 5 ] b: 1\n"),
        ("b: 1\n", [5], "b: 1\ndims: [ 5 ]\n"),
    ],
)
def test_other_values_of_a_list_keep_the_comments_between_them(text, values, expected):
    edit = replace_list(tree_of(text), None, "dims", values)

    assert mended(text, [edit])[0] == expected


def test_a_list_of_another_length_with_a_field_within_is_not_mended():
    assert replace_list(tree_of("dims: 3\nb: 1\ndims: 4\n"), None, "dims", [5]) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\303\251"', "é"),
        (r'"caf\xc3\xa9" "s"', "cafés"),
        (r'"a\n\x41\"é"', 'a\nA"é'),
        (r'"\377"', "\ufffd"),
        ("KIND_CPU", "KIND_CPU"),
    ],
)
def test_a_string_has_the_value_that_protobuf_reads(text, value):
    assert unquoted(text) == value
