"""A cluster of Ray on this machine, for all tests of this folder. `make test-ray` runs them."""

import contextlib
import os
import shutil
import socket
from pathlib import Path

import pytest

if os.environ.get("CORE_TEST_RAY") != "1":
    collect_ignore_glob = ["test_*.py"]

MODELS = Path(__file__).parents[3] / "examples" / "models"
# By default Ray gives up on a busy machine before its processes have started.
PATIENT = {
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "120",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_raylet_start_wait_time_s": "300",
}
os.environ.update(PATIENT, RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")

WAIT = """
import json
import os
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    \"\"\"Sleeps as many milliseconds as each request says, one after the other.\"\"\"

    def execute(self, requests):
        responses = []
        for each in requests:
            ms = each.inputs()[0].as_numpy()
            time.sleep(float(ms.max()) / 1000)
            responses.append(
                pb_utils.InferenceResponse([pb_utils.Tensor("ms_out", ms)])
            )
        return responses
"""
WAIT_CONFIG = """
backend: "python"
max_batch_size: 8
input [{ name: "ms" data_type: TYPE_INT32 dims: [1] }]
output [{ name: "ms_out" data_type: TYPE_INT32 dims: [1] }]
"""


@pytest.fixture(scope="session")
def free_port():
    """Return a function that finds a free port of this machine."""

    def find():
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            return one.getsockname()[1]

    return find


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """A repository with `digits`, `breast_cancer`, and `wait`, which sleeps for `ms`."""
    folder = tmp_path_factory.mktemp("repository") / "models"
    for name in ("digits", "breast_cancer"):
        shutil.copytree(MODELS / name, folder / name)
    (folder / "wait" / "1").mkdir(parents=True)
    (folder / "wait" / "config.pbtxt").write_text(WAIT_CONFIG)
    (folder / "wait" / "1" / "model.py").write_text(WAIT)
    return folder


@pytest.fixture(scope="session")
def cluster(free_port):
    """Ray with four logical processors; yields the port of Serve's HTTP proxy."""
    import ray
    from ray import serve

    port = free_port()
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    yield port
    serve.shutdown()
    ray.shutdown()


@pytest.fixture
def run(cluster):
    """Run applications until the end of the test: run(application) → handle."""
    from ray import serve

    names = []

    def start(application, name="default", route_prefix="/"):
        names.append(name)
        return serve.run(application, name=name, route_prefix=route_prefix)

    yield start
    for name in names:
        with contextlib.suppress(Exception):
            serve.delete(name)
