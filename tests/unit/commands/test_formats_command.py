"""core formats: which file belongs to which backend, and what happens to a file that two backends claim."""

import pytest
from unit.plugins.conftest import install as install

from core import plugins
from core.config import fill, parse_text
from core.errors import CoreError
from frontends.commands import formats

BACKEND = "import core\n\nbackend = core.Backend(instance=core.ModelInstance)\n"


def declare(install, name, file, value=""):
    install(
        f"backend-{name}",
        f"[core.backends]\n{name} = plug_{name}:backend\n[core.formats]\n{file} = {value or name}\n",
        {f"plug_{name}": BACKEND},
    )


def said(file):
    return {backend: text for each, backend, text in formats.claims() if each == file}


def test_a_file_is_listed_with_its_backend_and_form(install, capsys):
    declare(install, "plug", "model.plug", "plug [file, folder]")

    assert said("model.plug") == {"plug": "file or folder"}
    assert formats.run(None) == 0

    lines = capsys.readouterr().out.splitlines()
    [line] = [line for line in lines if line.startswith("model.plug ")]
    assert line.split() == ["model.plug", "plug", "file", "or", "folder"]
    assert lines[-1].endswith("names one with 'backend' in config.pbtxt.")


def test_a_file_of_two_backends_is_listed_with_both_and_a_model_must_name_one(install):
    declare(install, "plug", "model.plug")
    declare(install, "other", "model.plug")

    assert said("model.plug") == {
        "other": "file; 'plug' claims it too: name one with 'backend' in config.pbtxt",
        "plug": "file; 'other' claims it too: name one with 'backend' in config.pbtxt",
    }
    with pytest.raises(CoreError) as caught:
        fill(parse_text("", "test"), "m", plugins.formats(), ["model.plug"])
    assert caught.value.message == (
        "the files of the model are for several backends of the same precedence: model.plug ('other'), "
        "model.plug ('plug'); name one with 'backend' in config.pbtxt"
    )


def test_a_file_of_triton_belongs_to_its_backend_and_not_to_a_plugin(install):
    declare(install, "plug", "model.onnx")

    found = said("model.onnx")
    assert found["plug"] == (
        "file; 'onnxruntime' gets it, unless config.pbtxt has backend: \"plug\""
    )
    assert found["onnxruntime"].endswith("position 4; 'plug' claims it too and does not get it")
    config = parse_text("", "test")
    fill(config, "m", plugins.formats(), ["model.onnx"])
    assert config.backend == "onnxruntime"


def test_a_file_of_a_backend_that_is_not_installed_says_so(install):
    install("formats-plug", "[core.formats]\nmodel.plug = absent\n", {})

    assert said("model.plug") == {"absent": "file; the backend is not installed"}
