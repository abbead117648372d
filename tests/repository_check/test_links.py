"""Links: a model's folder that leads out of the repository, and the links that the command makes itself."""

import json
from pathlib import Path

import pytest
from repository_check.broken_models import ECHO, X, Y, onnx_model, python_model, write

STEP = 'step { model_name: "away" input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }'
BROKEN = onnx_model("max_batch_sise: 4\n" + X + Y)


@pytest.fixture
def linked(tmp_path):
    """A repository with a link to a broken model outside of it."""
    write(tmp_path / "outside", BROKEN)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "away").symlink_to(tmp_path / "outside")
    return tmp_path / "models"


def test_a_model_that_is_a_link_out_of_the_repository_is_not_read(linked, findings):
    (found,) = findings(linked)

    assert (found["level"], found["rule"]) == ("warning", "link")
    assert found["text"] == (
        f"'away' is a link to '{linked.parent / 'outside'}', outside of the repository: "
        "that folder is not checked"
    )


def test_it_is_neither_written_nor_loaded(tmp_path, linked, check):
    ran = tmp_path / "ran"
    code = f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n" + ECHO
    write(tmp_path / "evil", python_model(code=code))
    (linked / "evil").symlink_to(tmp_path / "evil")

    assert check(linked, "--write", "--load")[0] == 0

    assert (tmp_path / "outside" / "config.pbtxt").read_text().startswith("max_batch_sise")
    assert not ran.exists()


@pytest.mark.parametrize("version", ["", "model_version: 2 "])
def test_a_step_that_calls_it_is_left_to_a_load(version, linked, findings):
    step = STEP.replace("input_map", version + "input_map")
    head = 'platform: "ensemble"\nmax_batch_size: 4\n'
    text = f"{head}{X}{Y}ensemble_scheduling {{ {step} }}\n"
    write(linked / "chain", {"config.pbtxt": text, "1/": ""})

    assert {(each["level"], each["rule"]) for each in findings(linked)} == {
        ("warning", "link"),
        ("note", "unchecked"),
    }


def test_links_that_lead_nowhere_are_errors_of_their_model(tmp_path, check):
    models = tmp_path / "models"
    write(models / "good", onnx_model())
    write(models / "m", onnx_model())
    (models / "m" / "3").symlink_to("3")
    (models / "loop").symlink_to("loop")
    (models / "through").symlink_to("good/config.pbtxt/1")

    status, out = check(models)

    assert status == 1
    names = ("good", "loop", "m", "through")
    lines = [line.split() for line in out.splitlines() if line.startswith(names)]
    assert lines == [["good", "ok"], ["loop", "failed"], ["m", "failed"], ["through", "failed"]]
    loop = "Too many levels of symbolic links"
    assert f"loop: error: the folder cannot be read: {loop}; check its owner and permissions" in out
    assert "through: error: the folder cannot be read: Not a directory; check" in out
    assert f"3: error: version 3 cannot be read: {loop}; no version can be loaded" in out


def test_a_link_to_a_model_inside_of_the_repository_is_checked(tmp_path, findings):
    write(tmp_path / "models" / "real", BROKEN)
    (tmp_path / "models" / "alias").symlink_to("real")

    assert [each["rule"] for each in findings(tmp_path / "models")] == ["syntax", "syntax"]


@pytest.mark.parametrize("path", ["m", "{folder}/m", "../here/m"])
@pytest.mark.parametrize("inside", [True, False])
def test_sarif_names_the_file_of_a_single_model(path, inside, tmp_path, check, monkeypatch):
    folder = tmp_path / "here"
    write(folder / "m", BROKEN)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(folder if inside else tmp_path / "other")
    if not inside and path == "m":
        path = "../here/m"

    _, out = check(path.format(folder=folder), "--format", "sarif")

    (result,) = json.loads(out)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    change = result["fixes"][0]["artifactChanges"][0]["artifactLocation"]
    file = folder / "m" / "config.pbtxt"
    relative = {"uri": "m/config.pbtxt", "uriBaseId": "%SRCROOT%"}
    assert place == change == (relative if inside else {"uri": file.as_uri()})


def test_json_names_the_file_of_a_single_model(tmp_path, findings, monkeypatch):
    write(tmp_path / "m", BROKEN)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")

    (found,) = findings("../m")

    assert found["file"] == str(tmp_path / "m" / "config.pbtxt")


def test_text_and_differences_have_the_path_that_the_user_wrote(tmp_path, check, monkeypatch):
    write(tmp_path / "m", BROKEN)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")

    status, out = check("../m", "--write")

    assert status == 0
    assert out.startswith("--- ../m/config.pbtxt\n+++ ../m/config.pbtxt (mended)\n")
    assert "  ../m/config.pbtxt:1:1: error: " in out
    assert (tmp_path / "m" / "config.pbtxt").read_text().startswith("max_batch_size")


def test_an_error_of_writing_has_the_path_that_the_user_wrote(tmp_path, monkeypatch, capsys):
    from argparse import ArgumentParser

    from frontends.commands.check import command

    def refuse(self, target):
        raise PermissionError(13, "Permission denied")

    write(tmp_path / "m", BROKEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "replace", refuse)
    parser = ArgumentParser()
    command.arguments(parser)

    assert command.run(parser.parse_args(["m", "--write"])) == 1
    assert capsys.readouterr().err == "error: cannot write 'm/config.pbtxt': Permission denied\n"


def test_one_name_that_begins_another_is_no_problem(tmp_path, check, monkeypatch):
    for name in ("m", "m2"):
        write(tmp_path / "here" / name, BROKEN)
    monkeypatch.chdir(tmp_path)

    _, out = check("here/m", "here/m2")

    assert "  here/m/config.pbtxt:1:1:" in out
    assert "  here/m2/config.pbtxt:1:1:" in out


def test_a_file_of_a_model_is_named_itself(tmp_path, check, monkeypatch):
    (tmp_path / "net.onnx").write_bytes(b"no model")
    monkeypatch.chdir(tmp_path)

    _, out = check("net.onnx", "--format", "sarif")

    uris = {
        each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for each in json.loads(out)["runs"][0]["results"]
    }
    assert uris == {"net.onnx"}
