"""A server with functions as models that captures its requests, and its clients."""

import json
import re
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import grpc
import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb
import tritonclient.grpc.service_pb2_grpc as pb_grpc
from core_capture.records.reader import CaptureReader

import core

# Now: the tests of plugins forget modules that were imported first within them, and areas are made once.
import frontends.http.frontend  # noqa: F401

FLOATS = {"inputs": {"x": ("FP32", [-1])}, "outputs": {"y": ("FP32", [-1])}}


def double(x):
    if (x < 0).any():
        raise ValueError("below zero")
    return {"y": x * 2}


def words(text_input):
    for each in text_input.ravel()[0].split():
        yield {"text_output": np.array([each], object)}


def bind_models(server, **functions):
    """Give a server the models of these tests; `double=function` replaces one."""
    server.bind("double", functions.get("double", double), **FLOATS)
    server.bind(
        "words",
        words,
        inputs={"text_input": ("BYTES", [1])},
        outputs={"text_output": ("BYTES", [1])},
    )


class Client:
    """A client of a server that captures into `folder`."""

    def __init__(self, ports, folder):
        self.url = f"127.0.0.1:{ports['http']}"
        self.grpc_url = f"127.0.0.1:{ports['grpc']}"
        self.folder = folder
        self.channel = grpc.insecure_channel(self.grpc_url)
        self.stub = pb_grpc.GRPCInferenceServiceStub(self.channel)

    def post(self, path, document, headers=None):
        """Return (status, body)."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        request = urllib.request.Request(f"http://{self.url}{path}", body, headers or {})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def infer(self, *values, model="double", headers=None, **more):
        tensor = {"name": "x", "datatype": "FP32", "shape": [len(values)], "data": list(values)}
        return self.post(f"/v2/models/{model}/infer", {"inputs": [tensor], **more}, headers)

    def records(self, count):
        """Return the records, by the time of their beginning, as soon as there are `count`."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if list(self.folder.glob("*.corecap")):
                found = list(CaptureReader(self.folder).records())
                if len(found) >= count:
                    assert len(found) == count
                    return sorted(found, key=lambda each: each.time_ns)
            time.sleep(0.01)
        raise AssertionError(f"fewer than {count} records")


def message(*values, model="double", **more):
    """The request of Client.infer over gRPC."""
    found = pb.ModelInferRequest(model_name=model, **more)
    found.inputs.add(name="x", datatype="FP32", shape=[len(values)])
    found.raw_input_contents.append(np.array(values, np.float32).tobytes())
    return found


def counts(text):
    """The counts in the report of a replay: text → number."""
    return {name: int(n) for name, n in re.findall(r"^  (\S.*?) {2,}([\d,]+)$", text, re.MULTILINE)}


@pytest.fixture
def capture(tmp_path):
    """Start a server: capture(capture_rate=0.5, …) → Client. It captures into a folder of the test.

    ports   of Server.serve; any free ones by default
    """
    opened = []

    def start(functions=None, **options):
        folder = options.pop("folder", tmp_path / "capture")
        ports = options.pop("ports", {"http_port": 0, "grpc_port": 0})
        server = core.Server(**{"capture": str(folder), **options}).start()
        bind_models(server, **(functions or {}))
        client = Client(server.serve(**ports), folder)
        opened.append((server, client))
        client.server = server
        client.stop = lambda: stop(server, client)
        return client

    def stop(server, client):
        opened.remove((server, client))
        client.channel.close()
        server.stop()

    yield start
    for each in tuple(opened):
        stop(*each)


@pytest.fixture(scope="session")
def plain():
    """A server without a capture, to which records are sent."""
    with core.Server() as server:
        bind_models(server)
        client = Client(server.serve(http_port=0, grpc_port=0), None)
        yield client
        client.channel.close()


@pytest.fixture
def command(capsys):
    """Run `core NAME …`: command("capture", "show", …) → status, output, error."""
    from core.plugins.commands import run_command

    def run(name, *arguments):
        capsys.readouterr()
        status = run_command(name, [str(each) for each in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(status=status, out=out, err=err)

    return run
