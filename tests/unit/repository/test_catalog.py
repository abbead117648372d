"""The content of the repositories, model by model."""

import os

import pytest

from core.errors import CoreError, Kind
from core.options import Options
from core.repository import Catalog, FolderRepository, Override, open_repositories
from core.repository.names import checked_name

ENSEMBLE = 'platform: "ensemble" ensemble_scheduling { %s }'


def step(name):
    return f'step {{ model_name: "{name}" model_version: -1 }}'


def refusal(function, *args):
    with pytest.raises(CoreError) as error:
        function(*args)
    return error.value


def test_every_folder_is_a_model_and_a_file_is_none(folder, catalog):
    folder.model("a")
    folder.model(".hidden")
    (folder.path / "readme.txt").write_text("x")
    (folder.path / "link").symlink_to(folder.path / "a")
    (folder.path / "dangling").symlink_to(folder.path / "nowhere")

    assert list(catalog.names()) == [".hidden", "a", "link"]


def test_a_folder_whose_name_is_no_valid_text_is_no_model(folder, catalog):
    os.mkdir(os.fsencode(folder.path) + b"/\xff")
    folder.model("v1..2")

    assert list(catalog.names()) == ["v1..2"]
    assert catalog.survey("v1..2").name == "v1..2"


def test_versions_are_folders_of_digits_without_a_leading_zero(folder, catalog):
    folder.model(
        "m",
        versions=(1, 30, "0", "01", "notes", "1a", "-1", "\u0661", "9" * 30),
        files={"7": "a file, no folder"},
    )

    assert list(catalog.survey("m").versions) == [1, 30]


def test_a_model_without_versions_is_found_all_the_same(folder, catalog):
    folder.model("m", versions=())

    assert catalog.survey("m").versions == {}


def test_the_same_repository_given_twice_counts_once(folder):
    repositories = open_repositories(
        Options.defaults(model_repository=[str(folder.path), str(folder.path)])
    )

    assert [each.location for each in repositories] == [str(folder.path)]


def test_repositories_are_listed_in_order(folder, other):
    repositories = open_repositories(
        Options.defaults(model_repository=[str(other.path), str(folder.path)])
    )

    assert [each.location for each in repositories] == sorted([str(other.path), str(folder.path)])


def test_a_repository_that_is_missing_is_refused_by_name(tmp_path):
    catalog = Catalog([FolderRepository(str(tmp_path / "nowhere"))])

    error = refusal(catalog.check)

    assert str(tmp_path / "nowhere") in error.message


def test_a_url_that_no_plugin_opens_is_refused_by_name_without_its_password(monkeypatch):
    monkeypatch.setattr("core.plugins.ask", lambda hook, **arguments: None)

    error = refusal(
        open_repositories, Options.defaults(model_repository=["shelf://me:secret@bucket/models"])
    )

    assert error.kind is Kind.UNSUPPORTED
    assert error.message == (
        "model repository 'shelf://bucket/models': no plugin opens URLs of shelf://; "
        "try: pip install --find-links wheels 'core[plugins]'"
    )


def test_a_name_in_two_repositories_is_no_model(folder, other):
    folder.model("twice")
    other.model("twice")
    other.model("once")
    catalog = Catalog([FolderRepository(str(folder.path)), FolderRepository(str(other.path))])

    assert catalog.names() == {"once": 1, "twice": 2}
    assert refusal(catalog.survey, "twice").message == "model appears in two or more repositories"
    assert catalog.survey("once").name == "once"


def test_an_absent_model_names_the_searched_repositories(folder, catalog):
    error = refusal(catalog.survey, "absent")

    assert error.kind is Kind.INTERNAL
    assert "absent" in error.message and str(folder.path) in error.message


def test_a_model_that_vanishes_between_two_looks_is_absent(folder, catalog):
    directory = folder.model("m")
    catalog.survey("m")
    directory.rename(folder.path / "n")

    assert "no folder 'm'" in refusal(catalog.survey, "m").message


def test_backend_and_file_name_are_filled_in_from_the_first_version(folder, catalog):
    folder.model("m", versions=(), config=None, files={"1/model.onnx": "", "2/model.py": ""})

    config = catalog.survey("m").config

    assert (config.name, config.backend) == ("m", "onnxruntime")
    assert config.default_model_filename == "model.onnx"


def test_a_model_without_config_is_refused_when_configs_are_not_completed(folder):
    folder.model("m", config=None)
    catalog = Catalog([FolderRepository(str(folder.path))], needs_config=True)

    message = refusal(catalog.survey, "m").message

    assert message.startswith("failed to open text file for read")
    assert "config.pbtxt" in message


def test_a_named_config_goes_before_config_pbtxt(folder):
    folder.model("m", files={"configs/large.pbtxt": 'backend: "large"'})
    folder.model("n")
    catalog = Catalog(
        [FolderRepository(str(folder.path))],
        config_name="large",
    )

    assert catalog.survey("m").config.backend == "large"
    assert catalog.survey("n").config.backend == "test"


def test_a_parse_error_of_a_configuration_has_its_position(folder, catalog):
    folder.model("m", config="backend: \n input [")

    error = refusal(catalog.survey, "m")

    assert error.kind is Kind.INTERNAL
    assert "config.pbtxt" in error.message


def test_a_config_that_is_no_text_is_refused(folder, catalog):
    directory = folder.model("m")
    (directory / "config.pbtxt").write_bytes(b"\xff\xfe\x00")

    assert "config.pbtxt" in refusal(catalog.survey, "m").message


def test_a_config_with_another_name_than_its_folder_is_refused(folder, catalog):
    folder.model("m", config='name: "other" backend: "test"')

    error = refusal(catalog.survey, "m")

    assert error.kind is Kind.INTERNAL
    assert error.message == (
        "unexpected directory name 'm' for model 'other', directory name must equal model name"
    )


def test_an_ensemble_brings_its_steps_and_theirs(folder, catalog):
    folder.model("outer", config=ENSEMBLE % (step("inner") + step("absent")))
    folder.model("inner", config=ENSEMBLE % step("leaf"))
    folder.model("leaf")
    folder.model("unrelated")

    found = catalog.survey_names(["outer"])

    assert sorted(found) == ["absent", "inner", "leaf", "outer"]
    assert found["outer"].steps == ("inner", "absent")
    assert isinstance(found["absent"], CoreError)


def test_a_step_cannot_name_a_path_outside_of_the_repository(folder, other, catalog):
    other.model("secret")
    folder.model("m", config=ENSEMBLE % step("../other/secret"))

    found = catalog.survey_names(["m"])

    assert found["../other/secret"].kind is Kind.INVALID


@pytest.mark.parametrize("override", [None, Override("{}", {})])
def test_a_machine_without_memory_for_a_model_is_a_clear_error(folder, override):
    class Full(FolderRepository):
        def directory(self, name):
            raise OSError("cannot keep files in '/full'")

    folder.model("a")
    error = refusal(Catalog([Full(str(folder.path))]).survey, "a", override)

    assert (error.kind, error.message) == (Kind.INTERNAL, "cannot keep files in '/full'")


def test_one_broken_model_does_not_hide_the_others(folder, catalog):
    folder.model("broken", config="{")
    folder.model("good")

    found = catalog.survey_all()

    assert isinstance(found["broken"], CoreError)
    assert found["good"].name == "good"


def test_a_config_is_parsed_again_only_when_something_changed(folder, catalog):
    directory = folder.model("m")
    first = catalog.survey("m")

    assert catalog.survey("m") is first

    os.utime(directory / "config.pbtxt", ns=(1, 1))
    assert catalog.survey("m") is not first


@pytest.mark.parametrize("name", ["..", ".", "a/b", "../a", "a/../b", "a..b", "nul\0"])
def test_a_model_name_that_could_be_a_path_is_refused(name):
    error = refusal(checked_name, name)

    assert error.kind is Kind.INVALID
    assert "must not contain path traversal characters" in error.message


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_model_name_is_refused(name):
    expected = "Model name cannot be empty. Please enter a valid name to deploy."
    assert refusal(checked_name, name).message == expected


def test_blanks_around_a_model_name_do_not_count():
    assert checked_name(" m ") == "m"


def test_a_config_in_the_load_request_replaces_the_file(folder, catalog):
    directory = folder.model("m", config='backend: "test" max_batch_size: 4')

    source = catalog.survey("m", Override.of({"config": '{"backend": "other"}'}))

    assert (source.config.backend, source.config.max_batch_size) == ("other", 0)
    assert source.overridden
    assert source.directory.path == directory


@pytest.mark.parametrize("config", ["{", '{"nothing": 1}', "[]", '{"name": "other"}'])
def test_a_wrong_config_in_the_load_request_is_the_clients_mistake(folder, catalog, config):
    folder.model("m")

    assert refusal(catalog.survey, "m", Override.of({"config": config})).kind is Kind.INVALID


def test_a_config_in_the_load_request_needs_a_model_on_disk(catalog):
    error = refusal(catalog.survey, "m", Override.of({"config": "{}"}))

    assert error.kind is Kind.INTERNAL
