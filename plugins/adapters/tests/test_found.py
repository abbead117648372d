"""Which file of a folder is the model, and that model.py always is."""

import pytest
from backend_python.server.found import model_file
from core_adapters.adapter import serves
from core_adapters.formats import NAMES, SETTINGS

from core import CoreError, config, plugins


def file_in(folder, text=""):
    message = config.parse_text(f'name: "m" backend: "python" {text}', "test")
    config.fill(message, "m", plugins.formats())
    return str(model_file(message, folder / "1").relative_to(folder))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "1").mkdir()

    def make(*names):
        for name in names:
            (tmp_path / name).write_text("")
        return tmp_path

    return make


@pytest.mark.parametrize("name", NAMES)
def test_model_py_goes_before_everything_else(folder, name):
    assert file_in(folder("1/model.py", f"1/{name}", "model-settings.json")) == "1/model.py"


@pytest.mark.parametrize("name", NAMES)
def test_without_it_there_is_one_name_for_each_format(folder, name):
    assert file_in(folder(f"1/{name}")) == f"1/{name}"


def test_a_file_that_the_configuration_names_is_the_one(folder):
    path = folder("1/model.joblib", "1/mine.skops")

    assert file_in(path, 'default_model_filename: "mine.skops"') == "1/mine.skops"


def test_settings_next_to_the_versions_apply_to_their_files(folder):
    assert file_in(folder("model-settings.json", "1/model.joblib")) == "model-settings.json"


@pytest.mark.parametrize(
    "name,file", [("Iris", "Iris.py"), ("flowers.kinds.Iris", "flowers/kinds.py")]
)
def test_a_class_is_in_the_file_of_its_name(folder, name, file):
    text = f'parameters {{ key: "MODEL_CLASS" value {{ string_value: "{name}" }} }}'

    assert file_in(folder(), text) == f"1/{file}"


@pytest.mark.parametrize("name", ["", "../Iris", "a..B", "/etc/a.B"])
def test_an_invalid_class_name_is_refused(folder, name):
    text = f'parameters {{ key: "MODEL_CLASS" value {{ string_value: "{name}" }} }}'

    with pytest.raises(CoreError, match="expected the name of a class"):
        file_in(folder(), text)


def test_an_empty_folder_lacks_model_py(folder):
    assert file_in(folder()) == "1/model.py"


def test_whatever_needs_no_configuration_is_read_by_an_adapter():
    assert NAMES[0] == SETTINGS and all(map(serves, NAMES))


def test_every_file_that_it_serves_is_a_format_of_the_python_backend():
    declared = {each.file for each in plugins.formats() if each.backend == "python"}

    assert declared == {*NAMES, "model.py"}
