"""Folders for the tests, and the modules beside them."""

import json
import sys
import urllib.request
from pathlib import Path

import pytest
from core_tune.server.own import OwnServer

sys.path.insert(0, str(Path(__file__).parent))  # sleeping_model, virtual_server

from sleeping_model import sleeper


class Running(OwnServer):
    """A server with a repository, for the tests of a session.

    recording   folder with what it captures
    """

    def __init__(self, repository, recording):
        self.repository, self.recording = repository, recording
        sleeper(repository, "sleeper", 0.02, 0.0)
        super().__init__(repository, "sleeper", "grpc", [f"--capture={recording}"])

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        url = f"http://{self.address.authority}{path}"
        with urllib.request.urlopen(url, data, timeout=30) as answer:
            return json.loads(answer.read() or b"{}")

    def add(self, name, *times):
        """Load one more model that sleeps; return its folder."""
        folder = sleeper(self.repository, name, *times)
        self.load(name)
        return folder

    def load(self, name):
        self.ask(f"/v2/repository/models/{name}/load", {})

    def infer(self, name, rows=1):
        numbers = [1, 2, 3, 4] * rows
        tensor = {"name": "x", "datatype": "FP32", "shape": [rows, 4], "data": numbers}
        return self.ask(f"/v2/models/{name}/infer", {"inputs": [tensor]})


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    pytest.importorskip("backend_python")
    pytest.importorskip("core_capture")
    folder = tmp_path_factory.mktemp("running")
    (folder / "models").mkdir()
    with Running(folder / "models", folder / "recording") as server:
        yield server


@pytest.fixture
def repository(tmp_path):
    pytest.importorskip("backend_python")
    made = tmp_path / "models"
    made.mkdir()
    return made
