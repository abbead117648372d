"""Readiness over HTTP and gRPC: reported by a Python model, and after the death of its process."""

import os
import pathlib
import signal

import pytest
from conformance.model import Model
from conformance.protocol import wait_until

MODEL = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils

HERE = os.path.dirname(os.path.abspath(__file__))

class TritonPythonModel:
    def initialize(self, args):
        if os.path.exists(os.path.join(HERE, "broken")):
            raise RuntimeError("cannot start")
        with open(os.path.join(HERE, "pid"), "w") as file:
            file.write(str(os.getpid()))

    async def is_ready(self):
        return not os.path.exists(os.path.join(HERE, "closed"))

    def execute(self, requests):
        return [pb_utils.InferenceResponse(
            [pb_utils.Tensor("OUTPUT0", request.inputs()[0].as_numpy())]) for request in requests]
"""
ENSEMBLE = """
platform: "ensemble"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [ { model_name: "moody" model_version: -1
    input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }
"""


@pytest.fixture(scope="module")
def server(launch_for_all):
    return launch_for_all(
        [
            Model("moody", "plain", files={"1/model.py": MODEL}),
            Model("whole", "plain", config=ENSEMBLE),
        ]
    )


@pytest.fixture
def folder(server):
    yield pathlib.Path(server.repository) / "moody" / "1"
    for name in ("closed", "broken"):
        (pathlib.Path(server.repository) / "moody" / "1" / name).unlink(missing_ok=True)
    assert wait_until(lambda: server.ready("moody"), timeout=60)


def told(server):
    """Return the readiness of the model, of the ensemble that calls it, and of the server (HTTP, gRPC)."""
    with server.grpc_client() as client:
        return [
            (server.ready("moody"), client.is_model_ready("moody")),
            (server.ready("whole"), client.is_model_ready("whole")),
            (server.get("/v2/health/ready").status == 200, client.is_server_ready()),
        ]


def test_a_model_that_reports_not_ready_is_not_ready(server, folder):
    assert told(server) == [(True, True)] * 3

    (folder / "closed").touch()
    assert told(server) == [(False, False)] * 3

    (folder / "closed").unlink()
    assert told(server) == [(True, True)] * 3


def test_a_model_whose_process_cannot_restart_is_not_ready_until_it_can(server, folder):
    (folder / "broken").touch()
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    assert wait_until(lambda: "cannot start again" in server.log_text(), timeout=30)

    assert told(server) == [(False, False)] * 3
    assert server.alive()

    (folder / "broken").unlink()
    assert wait_until(lambda: told(server) == [(True, True)] * 3, timeout=60)
