"""Servers whose models have GPU tensors, in real child processes, on a played GPU."""

import gc
import os
import sys
import textwrap
from collections import Counter

import pytest
from backend_python import loans
from backend_python.server import lending
from core_testing import leftovers

import core

sys.path.insert(0, os.path.dirname(__file__))  # models import it there, too
import played_gpu
from gpu_models import ENSEMBLES, FREE, MODELS, TWICE

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


@pytest.fixture(scope="module", autouse=True)
def played(tmp_path_factory):
    """The played GPU in this process; yields the file of its calls."""
    path = tmp_path_factory.mktemp("gpu") / "asked"
    path.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYED_GPU_LOG", str(path))
        played_gpu.install(patch.setattr)
        patch.setattr(lending, "gpus", lambda: played_gpu.UUIDS)
        patch.setattr("backend_python.server.keeper.gpus", lambda: played_gpu.UUIDS)
        yield path


@pytest.fixture
def log(played):
    """log(pid=None): how often each call of the played GPU was made in this test, by all or one process."""
    begin = played.stat().st_size

    def read(pid=None):
        with played.open() as file:
            file.seek(begin)
            lines = [line.rstrip().split(" ", 1) for line in file]
        return Counter(what for process, what in lines if pid is None or int(process) == pid)

    return read


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Check that all memory lent in a test is returned before its end."""
    yield
    gc.collect()
    assert leftovers.settles(lambda: loans.known.counts == (0, 0))


class Models:
    """A server, and its models' connections."""

    def __init__(self, serving):
        self.serving = serving
        self.infer = serving.infer

    def process(self, name):
        chain = self.serving._inner.manager.resolve(name).chain
        return chain._pool.runners[0].instance._way._connection.process

    def pid(self, name):
        return self.process(name).pid

    def lent(self, name):
        """Return the numbers of loans in the server for a model's child: lent and borrowed."""
        held = self.process(name).lending
        return len(held.lender), len(held.borrower)


def step(model, takes, gives):
    return (
        f'step {{ model_name: "{model}" input_map {{ key: "x" value: "{takes}" }} '
        f'output_map {{ key: "y" value: "{gives}" }} }}'
    )


def started(repository, ensembles, models):
    """Start and return a server of models and ensembles.

    ensembles   name → names of its two steps
    models      name → body of the class, or that and more text of config.pbtxt
    """
    io = '{ name: "%s" data_type: TYPE_FP32 dims: [ -1 ] }'
    for name, given in models.items():
        body, more = given if isinstance(given, tuple) else (given, "")
        (repository / name / "1").mkdir(parents=True)
        text = MODEL + textwrap.indent(textwrap.dedent(body), "    ")
        (repository / name / "1" / "model.py").write_text(text)
        (repository / name / "config.pbtxt").write_text(
            f'backend: "python" max_batch_size: 4 input [ {io % "x"} ] output [ {io % "y"} ] '
            f"instance_group [ {{ kind: KIND_CPU count: 1 }} ] {more or FREE}"
        )
    for name, (first, second) in ensembles.items():
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(
            f'platform: "ensemble" max_batch_size: 4 input [ {io % "x"} ] output [ {io % "z"} ] '
            f"ensemble_scheduling {{ {step(first, 'x', 'a')} {step(second, 'a', 'z')} }}"
        )
    return core.Server(model_repository=str(repository)).start()


@pytest.fixture(scope="module")
def server(played, tmp_path_factory):
    """A server with MODELS and ENSEMBLES, for tests that do not break it."""
    serving = started(tmp_path_factory.mktemp("models"), ENSEMBLES, MODELS)
    yield Models(serving)
    serving.stop()


@pytest.fixture
def models(server, log):
    """Yield that server. After the test, check that no memory is lent any more."""
    yield server
    gc.collect()
    for name in MODELS.keys() - {"here"}:
        assert leftovers.settles(lambda name=name: server.lent(name) == (0, 0)), name


@pytest.fixture
def serve(tmp_path):
    """Serve models, also `twice`, and the ensemble `both` of two steps."""
    opened = []

    def start(both=("twice", "twice"), **models):
        models = {"twice": TWICE, **models}
        opened.append(started(tmp_path / "models", {"both": both}, models))
        return Models(opened[-1])

    yield start
    for serving in opened:
        serving.stop()
