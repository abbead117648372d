"""Folders that are laid out wrongly: the hint says what is there, and its command mends it."""

import logging
import re
import subprocess
from pathlib import Path

import pytest

from core.errors import CoreError
from core.options import Options
from core.plugins import hooks
from core.repository import Catalog, FolderRepository
from core.repository.source import ModelSource
from frontends import layouts


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in an empty folder, with the hooks of the module."""
    monkeypatch.chdir(tmp_path)
    was_there = hooks().is_registered(layouts)
    if not was_there:
        hooks().register(layouts, name="layouts")
    yield
    if not was_there:
        hooks().unregister(layouts)


def put(*paths):
    """Make a file at each path below the working directory; a path that ends with "/" is a folder."""
    for path in paths:
        if path.endswith("/"):
            Path(path).mkdir(parents=True)
        else:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text("content")


def survey(repository, name):
    """Return what a server finds of a model: a ModelSource, or the error."""
    return Catalog([FolderRepository(repository)]).survey_names([name])[name]


def hint_of(found):
    """Return the hint in the error of a model."""
    assert isinstance(found, CoreError), found
    before, _, hint = found.message.partition(". Wrong layout: ")
    assert before.startswith("Invalid model name: Could not determine backend for model")
    return hint


def run_command(hint):
    (command,) = re.findall("`(.+)`", hint)
    subprocess.run(["sh", "-euc", command], check=True, capture_output=True)


WRONG = {
    "a file without a version folder": (
        ["models/iris/model.onnx"],
        "'iris' has model.onnx but no version folder: "
        "`mkdir models/iris/1 && mv models/iris/model.onnx models/iris/1/`",
    ),
    "a file with another name, without a version folder": (
        ["models/iris/best.onnx"],
        "'iris' has best.onnx but no version folder: "
        "`mkdir models/iris/1 && mv models/iris/best.onnx models/iris/1/model.onnx`",
    ),
    "a file with its weights": (
        ["models/iris/net.xml", "models/iris/net.bin"],
        "'iris' has net.xml but no version folder: `mkdir models/iris/1 && "
        "mv models/iris/net.xml models/iris/1/model.xml && "
        "mv models/iris/net.bin models/iris/1/model.bin`",
    ),
    "a file that names another one": (
        ["models/iris/model.onnx", "models/iris/model.onnx.data"],
        "'iris' has model.onnx but no version folder: `mkdir models/iris/1 && "
        "mv models/iris/model.onnx models/iris/model.onnx.data models/iris/1/`",
    ),
    "a version folder with a letter": (
        ["models/iris/v2/model.onnx"],
        "'iris' has v2/model.onnx, but the name of a version folder is a number: "
        "`mv models/iris/v2 models/iris/2`",
    ),
    "a version folder with a word, and another name": (
        ["models/iris/latest/iris.pt"],
        "'iris' has latest/iris.pt, but the name of a version folder is a number: "
        "`mv models/iris/latest models/iris/1 && mv models/iris/1/iris.pt models/iris/1/model.pt`",
    ),
    "a file with the model's name": (
        ["models/iris/1/iris.onnx"],
        "'iris' has 1/iris.onnx, its backend looks for 1/model.onnx: "
        "`mv models/iris/1/iris.onnx models/iris/1/model.onnx`",
    ),
    "a file of scikit-learn with the model's name": (
        ["models/iris/1/iris.joblib"],
        "'iris' has 1/iris.joblib, its backend looks for 1/model.joblib: "
        "`mv models/iris/1/iris.joblib models/iris/1/model.joblib`",
    ),
    "names that a shell would split": (
        ["models/iris/my model.onnx"],
        "'iris' has my model.onnx but no version folder: "
        "`mkdir models/iris/1 && mv 'models/iris/my model.onnx' models/iris/1/model.onnx`",
    ),
}


@pytest.mark.parametrize(("paths", "expected"), WRONG.values(), ids=WRONG)
def test_the_command_of_the_hint_mends_the_layout(paths, expected):
    put(*paths)

    hint = hint_of(survey("models", "iris"))
    run_command(hint)

    assert hint == expected
    found = survey("models", "iris")
    assert isinstance(found, ModelSource)
    assert found.config.backend
    assert list(found.versions) in ([1], [2])


def test_the_folder_of_a_model_is_no_repository():
    put("models/iris/1/model.onnx")

    assert hint_of(survey("models/iris", "1")) == (
        "'models/iris' is the folder of a model, not a repository: `--model-repository=models`"
    )


def test_the_folder_above_a_repository_is_no_repository():
    put("all/models/iris/1/model.onnx")

    assert hint_of(survey("all", "models")) == (
        "'models' is no model: it holds the model 'iris': `--model-repository=all/models`"
    )


def test_a_configuration_without_a_version_is_explained_when_the_model_loads():
    put("models/iris/v1/model.onnx")
    Path("models/iris/config.pbtxt").write_text('backend: "onnxruntime"\n')

    found = survey("models", "iris")

    assert isinstance(found, ModelSource)
    assert found.hint.endswith("`mv models/iris/v1 models/iris/1`")


def test_an_ensemble_without_a_version_needs_an_empty_folder():
    put("models/both/labels.txt")
    Path("models/both/config.pbtxt").write_text('platform: "ensemble"\n')

    hint = survey("models", "both").hint
    run_command(hint)

    assert hint == (
        ". Wrong layout: 'both' has config.pbtxt but no version folder, which holds the model's file, and is "
        "empty for an ensemble: `mkdir models/both/1`"
    )
    assert list(survey("models", "both").versions) == [1]


@pytest.mark.parametrize(
    "paths", [["models/iris/1/"], ["models/iris/1/notes.txt"], ["models/iris/labels.txt"]]
)
def test_files_that_are_no_models_get_no_hint(paths):
    put(*paths)

    found = survey("models", "iris")

    assert isinstance(found, CoreError)
    assert "Wrong layout" not in found.message
    assert "known are" in found.message


def test_a_good_model_has_no_hint():
    put("models/iris/1/model.onnx")

    assert survey("models", "iris").hint == ""


def test_a_remote_folder_gets_no_command_of_a_shell():
    listing = {"iris.onnx": "stamp"}

    assert layouts.core_explain_layout("iris", "s3://bucket/models/iris", listing) == (
        "'iris' has iris.onnx but no version folder: move it to s3://bucket/models/iris/1/model.onnx"
    )


EMPTY = {
    "a file": (
        ["models/iris.onnx"],
        "it has iris.onnx, expected is <repository>/<model>/<version>/<file>: "
        "`mkdir -p models/iris/1 && mv models/iris.onnx models/iris/1/model.onnx`",
    ),
    "a file with the name that its backend looks for": (
        ["models/model.onnx"],
        "it has model.onnx, expected is <repository>/<model>/<version>/<file>: "
        "`mkdir -p models/my_model/1 && mv models/model.onnx models/my_model/1/`",
    ),
    "nothing": (
        ["models/"],
        "expected is <repository>/<model>/<version>/<file>: `core init models FILE` makes that of a "
        "model's file",
    ),
}


@pytest.mark.parametrize(("paths", "expected"), EMPTY.values(), ids=EMPTY)
def test_a_repository_without_models_is_reported(paths, expected, caplog):
    put(*paths)

    with caplog.at_level(logging.WARNING, "core"):
        layouts.core_run_server(Options.defaults(model_repository=["models"]))

    assert caplog.messages == [f"model repository 'models' holds no models; {expected}"]
    if paths[0].endswith("onnx"):
        run_command(expected)
        (name,) = FolderRepository("models").names()
        assert isinstance(survey("models", name), ModelSource)


def test_the_folder_of_a_version_is_no_repository(caplog):
    put("models/iris/1/model.onnx")

    layouts.core_run_server(Options.defaults(model_repository=["models/iris/1"]))

    assert caplog.messages == [
        "model repository 'models/iris/1' holds no models; it is a version of the model 'iris': "
        "`--model-repository=models`"
    ]


def test_a_repository_with_models_is_not_reported(caplog):
    put("models/iris/1/model.onnx")

    layouts.core_run_server(Options.defaults(model_repository=["models", "s3://bucket/a"]))

    assert caplog.messages == []
