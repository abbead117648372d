"""The tools around Triton, as `make test-dropin` installs them. Without them these tests are skipped."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

TOOLS = Path(os.environ["CORE_DROPIN"]).resolve() if os.environ.get("CORE_DROPIN") else None
PROGRAM = Path(sys.executable).with_name("tritonserver")

MODEL = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for each in requests:
            (name,) = each.requested_output_names()
            output = pb_utils.Tensor(name, each.inputs()[0].as_numpy())
            responses.append(pb_utils.InferenceResponse([output]))
        return responses
"""
CONFIG = """
backend: "python"
max_batch_size: 8
input [{ name: "x" data_type: TYPE_FP32 dims: [4] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [4] }]
dynamic_batching {}
"""
TEXT = """
backend: "python"
input [{ name: "string_input" data_type: TYPE_STRING dims: [-1, -1] }]
output [{ name: "string_output" data_type: TYPE_STRING dims: [-1, -1] }]
"""


@pytest.fixture
def tools():
    """Return what starts programs: an object of Tools."""
    return Tools()


@pytest.fixture
def repository(tmp_path):
    """Return a folder with two Python models that copy their input: `copy` and `text`."""
    folder = tmp_path / "models"
    for name, text in {"copy": CONFIG, "text": TEXT}.items():
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(text)
        (folder / name / "1" / "model.py").write_text(MODEL)
    return folder


class Tools:
    """The installed tools, and processes on free ports of this machine."""

    program = PROGRAM

    def find(self, path):
        """Return the file of a path below the tools' folder; skip the test if it is not there."""
        if TOOLS is None:
            pytest.skip("CORE_DROPIN names no folder of tools; `make test-dropin` sets it")
        found = TOOLS / path
        if not found.exists():
            pytest.skip(f"{found} is not there; `make test-dropin` installs it")
        return found

    def free_ports(self, count):
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
            for each in sockets:
                each.bind(("127.0.0.1", 0))
            return [each.getsockname()[1] for each in sockets]

    @contextlib.contextmanager
    def serve(self, *arguments):
        """Run the program until the end of the block; yield the ports of HTTP, gRPC and metrics."""
        ports = self.free_ports(3)
        named = zip(("http", "grpc", "metrics"), ports, strict=True)
        process = subprocess.Popen(
            [PROGRAM, *arguments, *(f"--{name}-port={port}" for name, port in named)]
        )
        try:
            self.wait_for(f"http://127.0.0.1:{ports[0]}/v2/health/ready", process)
            yield ports
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 0

    def wait_for(self, url, process, timeout_s=120):
        """Return when the URL answers with status 200, while a process runs."""
        end = time.monotonic() + timeout_s
        while True:
            assert process.poll() is None and time.monotonic() < end, f"no answer from {url}"
            try:
                with urllib.request.urlopen(url, timeout=5):
                    return
            except OSError:
                time.sleep(0.2)

    def run(self, *command, timeout=300, **environment):
        """Run a program to its end; return its output. Fail with the output unless its status is 0."""
        found = subprocess.run(
            [str(each) for each in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            env={**os.environ, **environment},
        )
        assert found.returncode == 0, found.stdout[-4000:]
        return found.stdout
