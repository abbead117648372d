"""Servers with Python models that call each other."""

import asyncio
import textwrap
import time

import numpy as np
import pytest
from backend_python import backend

from core.options import Options
from core.request import InferenceRequest
from core.server import InferenceServer
from core.tensor import Tensor

BASIS = """
import asyncio, gc, json, os, threading, time
import numpy as np
import triton_python_backend_utils as pb_utils


def call(model, x, **fields):
    return pb_utils.InferenceRequest(model_name=model, requested_output_names=["y"],
                                     inputs=[pb_utils.Tensor("x", x)], **fields)


def y_of(response):
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    return pb_utils.get_output_tensor_by_name(response, "y").as_numpy()


def x_of(request):
    return pb_utils.get_input_tensor_by_name(request, "x").as_numpy()


def respond(y):
    return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.asarray(y))])


class TritonPythonModel:
"""


def write(repository, name, body, *, decoupled=False, mode="", count=1, datatype="FP32", more=""):
    tensor = f"data_type: TYPE_{datatype} dims: [ -1 ]"
    config = (
        f'backend: "python" input [ {{ name: "x" {tensor} }} ] output [ {{ name: "y" {tensor} }} ]'
        f" instance_group [ {{ kind: KIND_CPU count: {count} }} ] {more}"
    )
    if decoupled:
        config += " model_transaction_policy { decoupled: true }"
    if mode:
        config += f' parameters {{ key: "EXECUTION_MODE" value {{ string_value: "{mode}" }} }}'
    folder = repository / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (repository / name / "config.pbtxt").write_text(config)
    (folder / "model.py").write_text(BASIS + textwrap.indent(textwrap.dedent(body), "    "))


class Models:
    """A server and what tests ask of it."""

    def __init__(self, server):
        self.server = server

    def send(self, name, x, **fields):
        return self.server.models.infer(InferenceRequest(name, {"x": Tensor.of("x", x)}, **fields))

    async def ask(self, name, *x, **fields):
        response = await self.send(name, np.array(x, np.float32), **fields)
        return response.output("y").array.tolist()

    async def tell(self, name, what=""):
        response = await self.send(name, np.array([what], object))
        return response.output("y").array[0].decode()

    def version(self, name):
        return self.server.manager.resolve(name)

    def child(self, name):
        return self.version(name).chain._pool.runners[0].instance._way._connection.process

    async def idle(self, *names):
        """Wait until these models have no request any more."""
        await self.until(lambda: all(not self.version(name).chain.in_flight for name in names))

    @staticmethod
    async def until(condition):
        end = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < end
            await asyncio.sleep(0.005)


@pytest.fixture
async def serve(tmp_path):
    """Serve models: name=(body, options of `write`), or name=body; `beside` are not loaded."""
    servers = []

    async def start(trace_config=None, load_threads=4, beside=(), **models):
        for name, given in (*models.items(), *dict(beside).items()):
            body, options = given if isinstance(given, tuple) else (given, {})
            write(tmp_path, name, body, **options)
        options = Options.defaults(
            model_repository=[str(tmp_path)],
            model_control_mode="explicit",
            trace_config=trace_config or {},
            model_load_thread_count=load_threads,
        )
        server = InferenceServer(options, find_backend=lambda name: backend)
        servers.append(server)
        await server.start()
        for name in models:
            await server.models.load(name)
        return Models(server)

    yield start
    for server in servers:
        assert await server.stop(30) == 0
