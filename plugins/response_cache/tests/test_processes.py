"""A real server with the model of the example: HTTP and gRPC together, callers by header, the example.

The commands of docs/serve/cache.md.
"""

import json
import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton
from conformance.launcher import Launcher

EXAMPLE = Path(__file__).parents[3] / "examples" / "response_cache"
ENTRY = 4 + 512  # bytes of an entry of this model
CACHE = f"size={4 * ENTRY} ttl=4 share=0.5 header=x-user coalesce=true"


@pytest.fixture(scope="session")
def server(pytestconfig):
    pytest.importorskip("backend_python")
    launcher = Launcher(pytestconfig)
    launcher.kind = "core"
    options = [f"--cache-config=local,{each}" for each in CACHE.split()]
    yield launcher.start(["score"], *options, source=EXAMPLE / "models")
    launcher.stop_all(wait=True)


def get(server, path):
    with urllib.request.urlopen(f"http://{server.http_address}{path}") as answer:
        return answer.read().decode()


def ask(server, value, user=""):
    x = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [value]}
    request = urllib.request.Request(
        f"http://{server.http_address}/v2/models/score/infer",
        json.dumps({"inputs": [x]}).encode(),
        {"x-user": user} if user else {},
    )
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())["outputs"][0]["data"][0]


def executed(server):
    return json.loads(get(server, "/v2/models/score/stats"))["model_stats"][0]["inference_count"]


def shared(server):
    return float(re.search(r"^core_cache_shared (\S+)$", server.metrics_text(), re.M)[1])


def test_equal_requests_of_http_and_grpc_run_once(server):
    before, together = executed(server), shared(server)
    x = triton.InferInput("x", [1, 1], "FP32").set_data_from_numpy(np.full((1, 1), 5, np.float32))

    def over_grpc():
        with triton.InferenceServerClient(server.grpc_address) as client:
            answers.append(float(client.infer("score", [x]).as_numpy("y")[0, 0]))

    answers, threads = [], [threading.Thread(target=over_grpc) for _ in range(4)]
    threads += [threading.Thread(target=lambda: answers.append(ask(server, 5.0))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)

    assert answers == [10.0] * 8
    assert executed(server) == before + 1
    assert shared(server) > together


def test_a_caller_keeps_its_share(server):
    for value in (101.0, 102.0):
        ask(server, value, "alice")
    for value in range(200, 205):
        ask(server, float(value), "bob")

    before = executed(server)
    for value in (101.0, 102.0):
        ask(server, value, "alice")
    assert executed(server) == before
    ask(server, 200.0, "bob")
    assert executed(server) == before + 1


def test_the_example(server):
    command = [sys.executable, EXAMPLE / "together.py", server.http_address, "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert re.findall(r": +(\d+) executed", done.stdout) == ["1", "0", "1"], done.stdout
