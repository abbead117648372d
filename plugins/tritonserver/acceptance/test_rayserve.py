"""Ray Serve: a deployment that holds a `tritonserver.Server`, like the examples of NVIDIA and of Ray."""

import json
import os
import subprocess
import urllib.request
from pathlib import Path

import pytest

# By default Ray gives up on a busy machine before its processes have started.
PATIENT = {
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "120",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_raylet_start_wait_time_s": "300",
}


@pytest.mark.timeout(600)
def test_a_deployment_answers_with_the_module(tools, repository):
    python = tools.find("ray/bin/python")
    tools.find("ray/bin/serve")
    (port,) = tools.free_ports(1)
    environment = {**os.environ, **PATIENT, "RAY_USAGE_STATS_ENABLED": "0"}

    app = Path(__file__).parent / "rayserve_app.py"
    process = subprocess.Popen([python, app, repository, str(port)], env=environment)
    try:
        url = f"http://127.0.0.1:{port}/identity?string_input=hello"
        tools.wait_for(url, process, timeout_s=500)
        with urllib.request.urlopen(url) as response:
            assert json.load(response) == "hello"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/models") as response:
            assert json.load(response)["text"] == "READY"
    finally:
        process.terminate()
        process.wait(60)
