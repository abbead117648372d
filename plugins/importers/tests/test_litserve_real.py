"""LitAPI classes: the server's answers are those of a LitServer with the same file."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip("litserve", reason="litserve is not installed: dependency group importers")

PLAIN = """
import litserve as ls
from weights import WEIGHTS


class Scaled(ls.LitAPI):
    def __init__(self, offset=0.0, **settings):
        super().__init__(**settings)
        self.offset = offset

    def setup(self, device):
        self.device_name = device

    def decode_request(self, request, context):
        context["unit"] = request.get("unit", "m")
        return request["x"]

    def predict(self, x):
        return [WEIGHTS[i] * each + self.offset for i, each in enumerate(x)]

    def encode_response(self, output, context):
        return {"y": output, "unit": context["unit"]}


if __name__ == "__main__":
    import sys

    ls.LitServer(Scaled(offset=0.5), accelerator="cpu").run(
        host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False
    )
"""

BATCHED = """
import numpy as np
import litserve as ls


class Squares(ls.LitAPI):
    def setup(self, device):
        self.sizes = []

    def decode_request(self, request):
        return np.array(request["x"], np.float64)

    def predict(self, batch):
        assert batch.ndim == 2, batch.shape
        return batch**2

    def encode_response(self, output):
        return {"y": output.tolist()}


if __name__ == "__main__":
    import sys

    api = Squares(max_batch_size=4, batch_timeout=0.2)
    ls.LitServer(api, accelerator="cpu").run(
        host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False
    )
"""

STREAM = """
import litserve as ls


class Counter(ls.LitAPI):
    def setup(self, device):
        pass

    def decode_request(self, request):
        return request["n"]

    def predict(self, n):
        for i in range(n):
            yield i * i

    def encode_response(self, outputs):
        for each in outputs:
            yield {"square": each}


if __name__ == "__main__":
    import sys

    ls.LitServer(Counter(stream=True), accelerator="cpu").run(
        host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False
    )
"""

ASYNC = """
import asyncio

import litserve as ls


class Slow(ls.LitAPI):
    def setup(self, device):
        pass

    async def decode_request(self, request):
        return request["x"]

    async def predict(self, x):
        await asyncio.sleep(0)
        return x + 1

    async def encode_response(self, output):
        return {"y": output}


if __name__ == "__main__":
    import sys

    ls.LitServer(Slow(enable_async=True), accelerator="cpu").run(
        host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False
    )
"""


@contextmanager
def lit_server(file):
    """Run a file with LitServe inside the with statement; yield a function that sends it a request."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(file), str(port)],
        cwd=file.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def ask(request):
        body = json.dumps(request).encode()
        url = f"http://127.0.0.1:{port}/predict"
        head = {"content-type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, body, head), timeout=60) as answer:
            return answer.read()

    end = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                break
        except (OSError, urllib.error.URLError):
            assert process.poll() is None, "LitServe ended"
            assert time.monotonic() < end, "LitServe does not start"
            time.sleep(0.2)
    try:
        yield ask
    finally:
        # Its server and its workers are processes of their own, which outlive the first one.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def request_of(value, rank=1):
    text = json.dumps(value).encode()
    return {"request": np.array([text], object).reshape((1,) * rank)}


def test_requests_and_responses_as_json(tmp_path, imported, served):
    (tmp_path / "weights.py").write_text("WEIGHTS = [2.0, 3.0, 4.0]\n")
    file = tmp_path / "scaled.py"
    file.write_text(PLAIN)

    report = imported(file)

    assert "LitAPI Scaled of scaled.py" in report
    server = served("scaled")
    with lit_server(file) as ask:
        for request in ({"x": [1.0, 2.0]}, {"x": [0.5], "unit": "km"}):
            answer = server.ask(request_of(request), name="scaled")["response"][0]
            assert json.loads(answer) == json.loads(ask(request))


def test_declared_tensors_are_the_fields_of_requests(tmp_path, imported, served):
    (tmp_path / "weights.py").write_text("WEIGHTS = [2.0, 3.0, 4.0]\n")
    file = tmp_path / "scaled.py"
    file.write_text(PLAIN)

    imported(file, "--input", "x:FP64[-1]", "--output", "y:FP64[-1]")

    answer = served("scaled").ask({"x": np.array([1.0, 2.0])}, name="scaled")
    assert answer["y"].tolist() == [2.5, 6.5]


def test_batches_are_formed_by_the_server(tmp_path, imported, served):
    file = tmp_path / "squares.py"
    file.write_text(BATCHED)

    imported(file)

    server = served("squares")
    requests = [{"x": [float(i), 2.0]} for i in range(4)]
    answers = server.together([request_of(each, 2) for each in requests], name="squares")
    assert server.executions("squares") < 4
    with lit_server(file) as ask:
        for answer, request in zip(answers, requests, strict=True):
            assert json.loads(answer["response"][0, 0]) == json.loads(ask(request))


def test_a_stream_sends_each_item(tmp_path, imported, served):
    file = tmp_path / "counter.py"
    file.write_text(STREAM)

    imported(file)

    parts = served("counter").stream(request_of({"n": 3}), name="counter")
    whole = b"".join(part["response"].ravel()[0] for part in parts if part)
    with lit_server(file) as ask:
        assert whole == ask({"n": 3})


def test_async_methods(tmp_path, imported, served):
    file = tmp_path / "slow.py"
    file.write_text(ASYNC)

    imported(file)

    answer = served("slow").ask(request_of({"x": 4}), name="slow")["response"][0]
    with lit_server(file) as ask:
        assert json.loads(answer) == json.loads(ask({"x": 4}))
