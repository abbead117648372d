"""The place of the model in the folder that SageMaker has unpacked."""

from pathlib import Path

import pytest
from core_platforms.sagemaker_folder import ROOT, checked, model_in

from core.errors import CoreError

PLAIN = 'backend: "onnxruntime"'


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (f"{ROOT}/1f/model", f"{ROOT}/1f/model"),
        (f"{ROOT}/1f/model/", f"{ROOT}/1f/model"),
        (f"{ROOT}/1f//./model/of-mine_2.0", f"{ROOT}/1f/model/of-mine_2.0"),
        (f"{ROOT}/1f/x/../model", f"{ROOT}/1f/model"),
    ],
)
def test_a_folder_of_the_platform_is_taken(url, path):
    assert checked(url) == Path(path)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/",
        "opt/ml/models/1f/model",
        ROOT,
        f"{ROOT}/1f",
        f"{ROOT}/model",
        f"{ROOT}/1f/models",
        f"{ROOT}/1f/model/a/b",
        f"{ROOT}/1f/model/a b",
        f"{ROOT}/1f/model/\u00e9",
        f"{ROOT}/1f/model\n",
        f"{ROOT}x/1f/model",
        f"{ROOT}/../../../etc/model",
        f"{ROOT}/1f/model/../../../../../etc",
        f"/mnt{ROOT}/1f/model",
        f"file://{ROOT}/1f/model",
        "/dev/fd/0",
        "/proc/self/cwd",
    ],
)
def test_any_other_is_refused(url):
    with pytest.raises(CoreError, match=f"expected a path of the form {ROOT}/<hash>/model"):
        checked(url)


@pytest.mark.timeout(5)
def test_a_long_url_takes_no_longer_than_it_is_long():
    with pytest.raises(CoreError) as error:
        checked("/" + "a/" * 200_000 + "../" * 200_000)

    assert len(error.value.message) < 400


@pytest.fixture
def unpacked(tmp_path):
    """unpacked(folder=text of its config.pbtxt or None for none)"""

    def write(**models):
        for name, config in models.items():
            (tmp_path / name).mkdir()
            if config is not None:
                (tmp_path / name / "config.pbtxt").write_text(config)
        return tmp_path

    return write


def ensemble(*steps):
    models = ", ".join(f'{{ model_name: "{step}" }}' for step in steps)
    return f'platform: "ensemble" ensemble_scheduling {{ step [ {models} ] }}'


def test_the_only_folder_is_the_model(unpacked):
    path = unpacked(a=None)
    (path / "license.txt").touch()

    assert model_in(path) == path / "a"


@pytest.mark.parametrize("entry", ["config.pbtxt", "1/"])
def test_a_folder_with_a_configuration_or_a_version_is_the_model_itself(unpacked, entry):
    path = unpacked(a=PLAIN)
    (path / entry).mkdir() if entry.endswith("/") else (path / entry).touch()

    assert model_in(path) == path


def test_of_several_the_ensemble_is_served(unpacked):
    path = unpacked(a=PLAIN, b=ensemble("a", "c"), c=None, d="{ is broken")

    assert model_in(path) == path / "b"


@pytest.mark.parametrize("text", ['backend: "ensemble"', "ensemble_scheduling { }"])
def test_an_ensemble_is_recognised_in_each_form(unpacked, text):
    path = unpacked(a=PLAIN, b=text)

    assert model_in(path) == path / "b"


def test_of_ensembles_of_ensembles_the_outermost_is_served(unpacked):
    path = unpacked(a=PLAIN, inner=ensemble("a"), outer=ensemble("inner", "a"))

    assert model_in(path) == path / "outer"


@pytest.mark.parametrize(
    ("models", "text"),
    [
        ({}, "holds no model"),
        ({"a": PLAIN, "b": None}, "holds the models a, b: one of them must be an ensemble.*: none"),
        ({"a": ensemble("c"), "b": ensemble("c"), "c": PLAIN}, "found: a, b"),
    ],
)
def test_an_ambiguous_case_is_an_error_with_the_reason(unpacked, models, text):
    with pytest.raises(CoreError, match=text):
        model_in(unpacked(**models))


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(CoreError, match="cannot be read: No such file or directory"):
        model_in(tmp_path / "none")
