"""Several processes record into one folder, and are started and stopped as one."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from core_capture.records.reader import CaptureReader

from .test_control import control

pytest.importorskip("core_workers")

CONFIG = """backend: "identity_of_workers"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
BACKEND = """
import core

class Same(core.ModelInstance):
    def execute(self, batch):
        return {"y": batch["x"]}

backend = core.Backend(instance=Same)
"""
BODY = b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}]}'


class Client:
    def __init__(self, port):
        self.url = f"127.0.0.1:{port}"

    def infer(self):
        """Send a request on a connection of its own: the kernel chooses the worker."""
        url = f"http://{self.url}/v2/models/m/infer"
        with urllib.request.urlopen(url, BODY, timeout=20) as answer:
            return answer.status


@pytest.fixture
def client(tmp_path):
    package = tmp_path / "packages"
    (package / "identity_of_workers-1.0.dist-info").mkdir(parents=True)
    (package / "identity_of_workers.py").write_text(BACKEND)
    info = package / "identity_of_workers-1.0.dist-info"
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: identity-of-workers\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(
        "[core.backends]\nidentity_of_workers = identity_of_workers:backend\n"
    )
    (tmp_path / "models" / "m" / "1").mkdir(parents=True)
    (tmp_path / "models" / "m" / "config.pbtxt").write_text(CONFIG)
    paths = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [
        *(sys.executable, "-m", "core.serve", f"--model-repository={tmp_path / 'models'}"),
        *("--workers=2", "--http-address=127.0.0.1", "--http-port=0", "--allow-grpc=false"),
        *("--allow-metrics=false", f"--capture-live={tmp_path / 'live'}"),
    ]
    log = tmp_path / "log"
    with open(log, "wb") as file:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        server = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
    try:
        yield Client(_port(server, log))
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0


def _port(server, log):
    """Return the port of HTTP once the server is ready."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text()
        if match := re.search(r"Started HTTPService at 127.0.0.1:(\d+)", log.read_text()):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{match[1]}/v2/health/ready"):
                    return int(match[1])
            except OSError:
                pass
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def test_workers(client, tmp_path):
    assert control(client, "start", {"name": "a"})[0] == 200
    for _ in range(40):
        assert client.infer() == 200
    running = control(client, "status")[1]["result"]
    assert control(client, "stop", {})[0] == 200

    assert [each["running"] for each in running] == [True, True]
    stopped = control(client, "status")[1]["result"]
    assert sum(each["counts"].get("written", 0) for each in stopped) == 40
    records = list(CaptureReader(tmp_path / "live" / "a").records())
    assert {each.worker for each in records} == {each["worker"] for each in stopped}
    assert len(records) == 40
