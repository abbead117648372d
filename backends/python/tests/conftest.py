"""Models of a few lines, opened behind the real pipeline."""

import asyncio
import os
import textwrap
from pathlib import Path

import numpy as np
import pytest
from backend_python import backend
from backend_python.server.model import PythonModel
from core_testing import leftovers

from core import config as configuration
from core.pipeline import ChainServices, open_chain
from core.request import InferenceRequest
from core.tensor import Tensor

IMPORTS = """
import json, os, signal, subprocess, sys, threading, time
import numpy as np
import triton_python_backend_utils as pb_utils

"""


def x_and_y(datatype="FP32", dims="-1"):
    """Return the text of config.pbtxt for an input x and an output y of this datatype and these dims."""
    tensor = f"data_type: TYPE_{'STRING' if datatype == 'BYTES' else datatype} dims: [ {dims} ]"
    return f'input [ {{ name: "x" {tensor} }} ] output [ {{ name: "y" {tensor} }} ]'


def class_of(body):
    """Return a model.py whose TritonPythonModel has this body."""
    body = textwrap.indent(textwrap.dedent(body), "    ")
    return f"{IMPORTS}\nclass TritonPythonModel:\n{body}\n"


class Served:
    """A loaded model and the chain before it."""

    def __init__(self, model, chain):
        self.model = model
        self.chain = chain
        self.statistics = chain.statistics

    def ask(self, inputs=None, /, **fields):
        """Send a request; `inputs`: name → array or Tensor. Returns the Reply."""
        tensors = {
            name: value if isinstance(value, Tensor) else Tensor.of(name, value)
            for name, value in (inputs or {}).items()
        }
        return self.chain.handler(InferenceRequest(self.model.name, tensors, **fields))

    async def y(self, *values, **fields):
        """Send FP32 values as x; return the values of y. The model has the default input and output."""
        response = await self.ask({"x": np.array(values, np.float32)}, **fields)
        return response.output("y").array.tolist()


def children(parent=None):
    """Return the process ids of the children in which models of this process run, zombies included."""
    return [pid for template in templates(parent) for pid in sorted(leftovers.children(template))]


def templates(parent=None):
    """Return the process ids of the template processes, from which the children are forked."""
    return [
        pid
        for pid in sorted(leftovers.children(parent or os.getpid()))
        if any(each in Path(f"/proc/{pid}/cmdline").read_bytes() for each in _TEMPLATES)
    ]


_TEMPLATES = (b"backend_python.child.template", b"/child/alone.py")


@pytest.fixture(name="children")
def _children():
    assert children() == []
    return children


@pytest.fixture(name="templates")
def _templates():
    assert templates() == []
    return templates


def write_model(folder, source, *, version="1", file="model.py"):
    directory = folder / version
    directory.mkdir(parents=True, exist_ok=True)
    (directory / file).write_text(source)
    return directory


def loaded_model(folder, config, name="m", version="1"):
    message = configuration.parse_text(f'name: "{name}" backend: "python"\n{config}', "test")
    configuration.normalise(message, {}, [])
    model = PythonModel()
    model.config, model.name, model.version = message, name, int(version)
    model.path, model.directory = folder / version, folder
    model.backend = backend
    model.load()
    return model


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "m"


@pytest.fixture
def loaded(folder):
    """Load the model in `folder`, without instances."""
    return lambda more="": loaded_model(folder, x_and_y() + more)


@pytest.fixture
def write():
    """Write a model with this class body; return the version's directory."""
    return lambda folder, source: write_model(folder, class_of(source))


@pytest.fixture
def load(write):
    """Write a model with this class body; return it loaded, without instances."""

    def load(folder, source, more=""):
        write(folder, source)
        return loaded_model(folder, x_and_y() + more, folder.name)

    return load


@pytest.fixture
async def serve(folder):
    """Serve a model: `source` is the body of its class, or a whole file that has the class.

    It has an input x and an output y of `datatype` and `dims`, and in config.pbtxt also `more`; or
    all of that is `config`.
    """
    opened = []

    async def start(
        source,
        more="",
        *,
        config=None,
        datatype="FP32",
        dims="-1",
        decoupled=False,
        mode="",
        name="m",
        policies=None,
    ):
        config = (config or x_and_y(datatype, dims)) + more
        if decoupled:
            config += " model_transaction_policy { decoupled: true }"
        if mode:
            config += f' parameters {{ key: "EXECUTION_MODE" value {{ string_value: "{mode}" }} }}'
        write_model(folder, source if "TritonPythonModel" in source else class_of(source))
        model = loaded_model(folder, config, name)
        signature = configuration.signature_of(model.config, model.directory, 1)
        loop = asyncio.get_running_loop()
        try:
            services = ChainServices(loop, policies=policies)
            chain = await open_chain(model, signature, services)
        except BaseException:
            model.unload()
            raise
        opened.append((model, chain))
        return Served(model, chain)

    yield start
    for model, chain in opened:
        await chain.close()
        model.unload()
    assert children() == []
