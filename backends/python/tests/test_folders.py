"""Backends that are a folder with a model.py, for any number of models: --backend-directory."""

import json
from pathlib import Path

import numpy as np
import pytest
from backend_python.server.template import template

from core import plugins
from core.errors import CoreError
from core.options import Options
from core.request import InferenceRequest
from core.server import InferenceServer
from core.tensor import Tensor

BACKEND = """
import json, os, sys
import numpy as np
import triton_python_backend_utils as pb_utils
from beside import ANSWER
from inner.deep import DEEP


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [-1]})
        config.add_output({"name": "y", "data_type": "TYPE_STRING", "dims": [1]})
        return config

    def initialize(self, args):
        with open(os.path.join(pb_utils.get_model_dir(), "model.json")) as file:
            self.text = json.load(file)["text"]
        self.told = {
            "name": __name__, "file": __file__, "path": sys.path, "prefix": sys.prefix,
            "arguments": args, "imported": [ANSWER, DEEP],
        }

    def execute(self, requests):
        told = json.dumps([self.text, self.told])
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([told], np.object_))])
                for _ in requests]
"""


@pytest.fixture
def folder(tmp_path):
    """The folder of a backend named `tells`."""
    folder = tmp_path / "backends/tells"
    (folder / "inner").mkdir(parents=True)
    (folder / "model.py").write_text(BACKEND)
    (folder / "beside.py").write_text("ANSWER = 42\n")
    (folder / "inner/deep.py").write_text("DEEP = 43\n")
    return folder


@pytest.fixture
def models(tmp_path):
    """models(name=text, …) writes models of that backend, which have only data."""
    repository = tmp_path / "models"

    def write(more="", **texts):
        for name, text in texts.items():
            version = repository / name / "1"
            version.mkdir(parents=True)
            (version / "model.json").write_text(json.dumps({"text": text}))
            (version.parent / "config.pbtxt").write_text(f'backend: "tells" {more}')
        return repository

    return write


@pytest.fixture
async def start(folder, tmp_path):
    """Start a server with the models and their backend."""
    started = []

    async def start(repository, **changes):
        chosen = {"backend_directory": str(folder.parent), "exit_on_error": False, **changes}
        options = Options.defaults(model_repository=[str(repository)], **chosen)
        server = InferenceServer(options)
        started.append(server)
        await server.start()
        return server

    yield start
    for server in started:
        await server.stop(10.0)
    assert template._template is None


async def ask(server, model):
    x = Tensor.of("x", np.array([1], np.float32))
    response = await server.models.infer(InferenceRequest(model, {"x": x}))
    return json.loads(response.output("y").array[0])


def reason(server, model):
    (found,) = (each["reason"] for each in server.manager.index() if each["name"] == model)
    return found


async def test_one_folder_serves_many_models_which_bring_only_data(start, models):
    server = await start(models(one="first", two="second"))

    assert (await ask(server, "one"))[0] == "first"
    assert (await ask(server, "two"))[0] == "second"


async def test_the_model_runs_as_in_triton(start, models, folder):
    repository = models(one="first")
    server = await start(repository)

    _, told = await ask(server, "one")

    assert told["name"] == "model"
    assert told["file"] == str(folder / "model.py")
    assert told["imported"] == [42, 43]
    assert str(folder) in told["path"]
    assert str(folder.parent) not in told["path"]
    assert told["arguments"]["model_repository"] == str(repository / "one")
    assert server.models.config_json("one")["runtime"] == "model.py"
    assert server.models.config_json("one")["default_model_filename"] == ""


async def test_a_model_may_name_another_file_of_the_folder(start, models, folder):
    (folder / "other.py").write_text(BACKEND.replace("[ANSWER, DEEP]", "['other']"))
    server = await start(models('runtime: "other.py"', one="first"))

    assert (await ask(server, "one"))[1]["imported"] == ["other"]


async def test_a_file_that_the_folder_has_not_is_named(start, models, folder):
    server = await start(models('runtime: "other.py"', one="first"))

    assert reason(server, "one") == (
        f"Invalid argument: Python model file not found in '{folder}/other.py'; the folder has "
        "beside.py, model.py. It is the folder of backend 'tells'; runtime in config.pbtxt names the "
        "file in it"
    )


async def test_settings_of_python_are_those_of_the_folder_too(start, models):
    config = {"python": {"stub-timeout-seconds": "none"}}
    server = await start(models(one="first"), backend_config=config)

    assert "python,stub-timeout-seconds=none: expected a positive number" in reason(server, "one")


async def test_its_own_settings_go_first(start, models):
    config = {"python": {"stub-timeout-seconds": "none"}, "tells": {"stub-timeout-seconds": "20"}}
    server = await start(models(one="first"), backend_config=config)

    assert (await ask(server, "one"))[0] == "first"


async def test_an_archive_next_to_the_file_is_the_environment_of_all_models(
    start, models, folder, tmp_path
):
    (folder / "pb_exec_env_model.py.tar.gz").write_bytes(b"never packed")

    server = await start(models(one="first"))

    packed = f"EXECUTION_ENV_PATH '{folder}/pb_exec_env_model.py.tar.gz'"
    assert f"model 'one': {packed} is no archive" in reason(server, "one")


async def test_a_folder_without_a_file_that_runs_is_no_backend(start, models, folder):
    (folder / "model.py").unlink()

    server = await start(models(one="first"))

    assert "no backend named 'tells'" in reason(server, "one")


async def test_a_backend_that_is_installed_goes_first(start, folder, tmp_path):
    (folder.parent / "python").mkdir()
    (folder.parent / "python/model.py").write_text("raise RuntimeError('not this one')")
    version = tmp_path / "models/m/1"
    version.mkdir(parents=True)
    (version / "model.json").write_text('{"text": "own"}')
    (version / "beside.py").write_text("ANSWER = 1\n")
    (version / "inner").mkdir()
    (version / "inner/deep.py").write_text("DEEP = 2\n")
    (version / "model.py").write_text(BACKEND)

    server = await start(tmp_path / "models")

    text, told = await ask(server, "m")
    assert (text, told["imported"]) == ("own", [1, 2])


@pytest.mark.parametrize("name", ["../tells", ".", ".."])
async def test_a_name_leads_nowhere_else(start, models, folder, tmp_path, name):
    for elsewhere in (folder.parent, tmp_path):
        (elsewhere / "model.py").write_text(BACKEND)
    repository = models(one="first")
    (repository / "one/config.pbtxt").write_text(f'backend: "{name}"')

    server = await start(repository)

    assert "no backend named" in reason(server, "one")


async def test_a_model_with_files_in_a_folder_next_to_model_py_finds_them(start, tmp_path):
    source = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        path = os.path.join(args["model_repository"], args["model_version"], "linear")
        with open(os.path.join(path, "pytorch_model.bin"), "rb") as file:
            self.weights = np.frombuffer(file.read(), np.float32).reshape(2, 3)

    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", self.weights @ pb_utils.get_input_tensor_by_name(request, "x").as_numpy())])
            for request in requests]
"""
    version = tmp_path / "models/linear/1"
    (version / "linear").mkdir(parents=True)
    (version / "model.py").write_text(source)
    weights = np.arange(6, dtype=np.float32)
    (version / "linear/pytorch_model.bin").write_bytes(weights.tobytes())
    (version.parent / "config.pbtxt").write_text(
        'backend: "python" input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]'
        ' output [ { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } ]'
    )

    server = await start(tmp_path / "models")

    x = Tensor.of("x", np.array([1, 2, 3], np.float32))
    response = await server.models.infer(InferenceRequest("linear", {"x": x}))
    assert response.output("y").array.tolist() == [8, 26]


def test_without_that_directory_there_is_no_such_backend():
    with pytest.raises(CoreError, match="no backend named 'tells'"):
        plugins.backend("tells")


async def test_the_example_is_served(start):
    example = Path(__file__).parents[3] / "examples/folder_backend"
    server = await start(example / "models", backend_directory=str(example / "backends"))

    async def at(model, *x):
        tensor = Tensor.of("x", np.array([x], np.float64))
        response = await server.models.infer(InferenceRequest(model, {"x": tensor}))
        return response.output("y").array.tolist()

    assert await at("line", 0, 1) == [[1, 3]]
    assert await at("parabola", 0, 1, 2) == [[-1, 0, 3]]
