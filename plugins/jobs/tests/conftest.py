"""Servers with functions as models that keep jobs, and their clients."""

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest

import core

# Now: the tests of plugins forget modules that were imported first within them, and areas are made once.
import frontends.http.frontend  # noqa: F401
from core.options import Options
from core.server import InferenceServer

VECTOR = {"inputs": {"x": ("FP32", [-1])}, "outputs": {"y": ("FP32", [-1])}}
LINES = {"Content-Type": "application/jsonl"}
GATED = """backend: "gated"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
dynamic_batching { default_queue_policy { max_queue_size: 1 } }
"""


class Models:
    """Functions as models: `double` fails below zero; `gate` answers when it is opened."""

    def __init__(self):
        self.opened = threading.Event()
        self.asked = []  # first values of the requests to `gate`

    def bind(self, server):
        server.bind("double", double, **VECTOR)
        server.bind("gate", self.gate, **VECTOR, instances=8)
        server.bind(
            "words",
            words,
            inputs={"text": ("BYTES", [1])},
            outputs={"word": ("BYTES", [1])},
        )

    def gate(self, x):
        self.asked.append(float(x[0]))
        assert self.opened.wait(30)
        return {"y": x}


def double(x):
    if (x < 0).any():
        raise ValueError("below zero")
    return {"y": x * 2}


def words(text):
    for each in text.ravel()[0].split():
        yield {"word": np.array([each], object)}


def request(*values, **more):
    """The JSON of a request to a model with the input x."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [len(values)], "data": list(values)}
    return json.dumps({"inputs": [tensor], **more}).encode()


def batch(*values):
    """The lines of a batch: a request for each value."""
    return b"\n".join(request(each) for each in values)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]

    @property
    def lines(self):
        return [json.loads(line) for line in self.body.splitlines()]


class Client:
    """A client of the routes of jobs.

    repeats   whether to send a request again whose connection was reset
    """

    repeats = False

    def __init__(self, port, headers=None):
        self.url = f"http://127.0.0.1:{port}"
        self.headers = headers or {}

    def call(self, method, path, body=None, headers=None):
        fields = {**self.headers, **(headers or {})}
        asked = urllib.request.Request(self.url + path, body, fields, method=method)
        while True:
            try:
                with urllib.request.urlopen(asked, timeout=40) as answer:
                    return Answer(answer.status, answer.headers, answer.read())
            except urllib.error.HTTPError as error:
                return Answer(error.code, error.headers, error.read())
            except (
                ConnectionResetError,
                urllib.error.URLError,
            ):  # of a worker that was killed before it accepted
                if not self.repeats:
                    raise

    def get(self, path):
        return self.call("GET", path)

    def submit(self, model, body, headers=None):
        """Submit a job, and return its document."""
        answer = self.call("POST", f"/v2/models/{model}/jobs", body, headers)
        assert answer.status == 202, answer.body
        return answer.json

    def ended(self, id, wait_s=30):
        """Return the document of a job when it has ended."""
        found = self.get(f"/v2/jobs/{id}?wait={wait_s}").json
        assert found["state"] in ("done", "failed", "cancelled"), found
        return found

    def state(self, id):
        return self.get(f"/v2/jobs/{id}").json["state"]

    def results(self, id, query=""):
        return self.get(f"/v2/jobs/{id}/results{query}")

    def until(self, id, condition):
        """Wait until the document of a job fulfils a condition; return it."""
        end = time.monotonic() + 30
        while not condition(found := self.get(f"/v2/jobs/{id}").json):
            assert time.monotonic() < end, found
            time.sleep(0.01)
        return found


@pytest.fixture
def serve(tmp_path):
    """Start a server: serve(jobs_running=1, …) → Client with the attributes `models` and `server`."""
    servers = []

    def start(**options):
        models = Models()
        given = {"jobs_folder": str(tmp_path / "jobs"), "jobs_patience_secs": 20.0, **options}
        server = core.Server(**given).start()
        servers.append((server, models))
        models.bind(server)
        client = Client(server.serve(http_port=0)["http"])
        client.models, client.server = models, server
        return client

    yield start
    for server, models in servers:
        models.opened.set()
        server.stop()


@pytest.fixture(scope="session")
def client(tmp_path_factory):
    """A server for all tests that leave it as it was."""
    models = Models()
    models.opened.set()
    folder = tmp_path_factory.mktemp("jobs")
    with core.Server(jobs_folder=str(folder), jobs_patience_secs=0.2) as server:
        models.bind(server)
        yield Client(server.serve(http_port=0)["http"])


@pytest.fixture
async def inner(tmp_path):
    """A server in this event loop. Model `m` answers when `inner.gate` is set; its queue has one place."""
    folder = tmp_path / "models" / "m"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(GATED)
    gate = asyncio.Event()

    class Gated(core.ModelInstance):
        async def execute(self, batch):
            await gate.wait()
            return {"y": batch["x"]}

    backend = core.Backend(instance=Gated)
    options = Options.defaults(model_repository=[str(folder.parent)])
    server = InferenceServer(options, find_backend={"gated": backend}.get)
    await server.start()
    yield SimpleNamespace(server=server, gate=gate)
    gate.set()
    await server.stop(30)
