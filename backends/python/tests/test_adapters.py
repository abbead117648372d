"""A stranger's adapter: found by its entry point, imported by the process that runs the model."""

import importlib
import sys

import numpy as np
import pytest
from backend_python import adapters, backend
from core_testing.served import Served

from core import CoreError, plugins

ADAPTER = """
import os

def find(version, parameters):
    if parameters.get("KIND") == "wrong":
        raise ValueError("parameter KIND is 'wrong', expected nothing")
    file = os.path.join(version, "model.double")
    return file if os.path.isfile(file) else None

def serves(file):
    return file.endswith(".double")

def describes_more(file):
    return False

def model_of_file(file):
    from plug_adapter.model import Double
    return Double

def model_of_module(module, file):
    return getattr(module, "Model", None)
"""
MODEL = """
import triton_python_backend_utils as pb_utils

class Double:
    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(each, "x").as_numpy() for each in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", x * 2)]) for x in tensors]
"""
ENTRIES = """
[backend_python.adapters]
plug = plug_adapter.adapter
[core.formats]
model.double = python
"""
CONFIG = """
input { name: "x" data_type: TYPE_FP32 dims: -1 }
output { name: "y" data_type: TYPE_FP32 dims: -1 }
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a distribution that has an adapter, for one test."""
    site = tmp_path / "site"
    (site / "plug_adapter").mkdir(parents=True)
    info = site / "plug_adapter-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: plug-adapter\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    for name, text in {"__init__": "", "adapter": ADAPTER, "model": MODEL}.items():
        (site / f"plug_adapter/{name}.py").write_text(text)
    before = dict(adapters._places)
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    plugins.look_again()
    yield
    for name in [name for name in sys.modules if name.startswith("plug_adapter")]:
        del sys.modules[name]
    adapters._places.clear()
    adapters.add(before)
    plugins.look_again()


@pytest.fixture
def version(tmp_path):
    folder = tmp_path / "models/m/1"
    folder.mkdir(parents=True)
    return folder


def answer(version):
    with Served(backend, version.parents[1]) as served:
        served.load("m")
        return served.ask({"x": np.array([1, 2], np.float32)}, name="m")["y"].tolist()


@pytest.mark.parametrize("mode", ["process", "shared", "thread", "inline"])
def test_an_adapter_serves_its_file(installed, version, mode):
    (version / "model.double").touch()
    text = f'parameters {{ key: "EXECUTION_MODE" value {{ string_value: "{mode}" }} }}'
    (version.parent / "config.pbtxt").write_text(CONFIG + text)

    assert answer(version) == [2.0, 4.0]


def test_an_adapter_serves_a_module_without_tritonpythonmodel(installed, version):
    (version / "model.py").write_text(MODEL.replace("Double", "Model"))
    (version.parent / "config.pbtxt").write_text(CONFIG)

    assert answer(version) == [2.0, 4.0]


def test_an_error_of_an_adapter_fails_the_load_by_name(installed, version):
    text = 'backend: "python" parameters { key: "KIND" value { string_value: "wrong" } }'
    (version.parent / "config.pbtxt").write_text(CONFIG + text)

    with pytest.raises(CoreError, match="model 'm': parameter KIND is 'wrong', expected nothing"):
        answer(version)


def test_without_the_adapter_the_file_is_of_no_backend(version):
    (version / "model.double").touch()
    (version.parent / "config.pbtxt").write_text(CONFIG)

    with pytest.raises(CoreError, match=r"found model\.double; known are "):
        answer(version)
