"""Servers whose models have GPU tensors, in processes of their own that are real, on a GPU that is played."""

import gc
import os
import sys
import textwrap
from collections import Counter

import pytest
from backend_python import loans
from backend_python.server import lending

import core

sys.path.insert(0, os.path.dirname(__file__))  # models import it there, too
import played_gpu
from gpu_models import FREE, TWICE

MODEL = f"""
import os, signal, sys, threading
import numpy as np
import triton_python_backend_utils as pb_utils

sys.path.insert(0, {os.path.dirname(__file__)!r})
import played_gpu
from gpu_models import FREE, TWICE
from played_gpu import look, on_gpu
played_gpu.install()


def x_of(request):
    return pb_utils.get_input_tensor_by_name(request, "x")


def call(model, *inputs, **fields):
    request = pb_utils.InferenceRequest(
        model_name=model, requested_output_names=["y"], inputs=list(inputs), **fields)
    response = request.exec()
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    return response.output_tensors()[0]


def respond(*tensors):
    return pb_utils.InferenceResponse(list(tensors))


class TritonPythonModel:
"""


@pytest.fixture
def log(tmp_path, monkeypatch):
    """What has been asked of the GPU, in all processes."""
    path = tmp_path / "asked"
    path.touch()
    monkeypatch.setenv("PLAYED_GPU_LOG", str(path))

    def read(pid=None):
        lines = [line.split(" ", 1) for line in path.read_text().splitlines()]
        return Counter(what for process, what in lines if pid is None or int(process) == pid)

    return read


@pytest.fixture(autouse=True)
def gpu(log, monkeypatch):
    """The played GPU in this process, which forgets nothing that is lent."""
    played_gpu.install(monkeypatch.setattr)
    monkeypatch.setattr(lending, "gpus", lambda: played_gpu.UUIDS)
    monkeypatch.setattr("backend_python.server.keeper.gpus", lambda: played_gpu.UUIDS)
    yield
    gc.collect()
    assert loans.known.counts == (0, 0)


class Models:
    """A server, and its models' connections."""

    def __init__(self, serving):
        self.serving = serving
        self.infer = serving.infer

    def process(self, name):
        chain = self.serving._inner._manager.resolve(name).chain
        return chain._pool.workers[0].instance._way._connection.process

    def pid(self, name):
        return self.process(name).pid

    def lent(self, name):
        """How many tensors a model's child has of the server, and the server of it."""
        held = self.process(name).lending
        return len(held.lender), len(held.borrower)


def step(model, takes, gives):
    return (
        f'step {{ model_name: "{model}" input_map {{ key: "x" value: "{takes}" }} '
        f'output_map {{ key: "y" value: "{gives}" }} }}'
    )


@pytest.fixture
def serve(tmp_path):
    """Serve models: name=body, or (body, more of its configuration), and ensemble `both` of two steps."""
    opened = []

    def start(both=("twice", "twice"), **models):
        io = '{ name: "%s" data_type: TYPE_FP32 dims: [ -1 ] }'
        repository = tmp_path / "models"
        for name, given in {"twice": TWICE, **models}.items():
            body, more = given if isinstance(given, tuple) else (given, "")
            (repository / name / "1").mkdir(parents=True)
            text = MODEL + textwrap.indent(textwrap.dedent(body), "    ")
            (repository / name / "1" / "model.py").write_text(text)
            (repository / name / "config.pbtxt").write_text(
                f'backend: "python" max_batch_size: 4 input [ {io % "x"} ] output [ {io % "y"} ] '
                f"instance_group [ {{ kind: KIND_CPU count: 1 }} ] {more or FREE}"
            )
        (repository / "both" / "1").mkdir(parents=True)
        first, second = both
        (repository / "both" / "config.pbtxt").write_text(
            f'platform: "ensemble" max_batch_size: 4 input [ {io % "x"} ] output [ {io % "z"} ] '
            f"ensemble_scheduling {{ {step(first, 'x', 'a')} {step(second, 'a', 'z')} }}"
        )
        serving = core.Server(model_repository=str(repository))
        opened.append(serving)
        serving.start()
        return Models(serving)

    yield start
    for serving in opened:
        serving.stop()
