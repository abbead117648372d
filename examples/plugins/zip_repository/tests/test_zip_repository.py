"""A server whose models are in a zip file."""

import os
import zipfile

import core_zip_repository
import numpy as np
import pytest

import core
from core import plugins
from core.errors import CoreError

CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
MODEL = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        xs = [pb_utils.get_input_tensor_by_name(each, "x").as_numpy() for each in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", FACTOR * x)]) for x in xs]
"""


@pytest.fixture(autouse=True)
def plugin():
    plugins.hooks().register(core_zip_repository, "zip_repository")
    yield
    plugins.hooks().unregister(core_zip_repository)


def write(path, **factors):
    """Write a zip file of models that multiply, as a program does that writes it anew."""
    new = path.with_suffix(".new")
    with zipfile.ZipFile(new, "w") as file:
        for name, factor in factors.items():
            file.writestr(f"{name}/config.pbtxt", CONFIG)
            file.writestr(f"{name}/1/model.py", MODEL.replace("FACTOR", str(factor)))
    later_ns = path.stat().st_mtime_ns + 10**9 if path.exists() else new.stat().st_mtime_ns
    os.utime(new, ns=(later_ns, later_ns))
    new.replace(path)


def ask(server, name):
    return server.infer(name, {"x": np.array([1], np.float32)})["y"].tolist()


def test_each_folder_in_the_file_is_a_model(tmp_path):
    write(tmp_path / "models.zip", double=2, triple=3)

    with core.Server(model_repository=f"zip://{tmp_path}/models.zip") as server:
        assert (ask(server, "double"), ask(server, "triple")) == ([2], [3])


def test_a_file_that_changes_is_read_again(tmp_path):
    write(tmp_path / "models.zip", m=2)
    options = {"model_control_mode": "explicit", "load_model": ["m"]}

    with core.Server(model_repository=f"zip://{tmp_path}/models.zip", **options) as server:
        assert ask(server, "m") == [2]
        write(tmp_path / "models.zip", m=5, added=7)
        server.load("m")
        server.load("added")
        assert (ask(server, "m"), ask(server, "added")) == ([5], [7])


@pytest.mark.parametrize("content", [None, b"no zip"])
def test_a_file_that_cannot_be_read_ends_the_start(tmp_path, content):
    if content is not None:
        (tmp_path / "models.zip").write_bytes(content)

    with pytest.raises(CoreError, match=r"cannot open model repository 'zip://.*models\.zip'"):
        core.Server(model_repository=f"zip://{tmp_path}/models.zip").start()
