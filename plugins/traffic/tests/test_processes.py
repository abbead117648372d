"""A real server of two workers with the models of docs/operate/traffic.md: HTTP, gRPC and the example."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from functools import partial
from pathlib import Path

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from conformance.launcher import Launcher
from google.protobuf.wrappers_pb2 import StringValue

EXAMPLE = Path(__file__).parents[3] / "examples" / "traffic"
WORKERS = 2


@pytest.fixture(scope="session")
def server(pytestconfig):
    pytest.importorskip("core_workers")
    pytest.importorskip("backend_python")
    launcher = Launcher(pytestconfig)
    launcher.kind = "core"
    pattern = "(?i)x-tier"
    yield launcher.start(
        ["price"],
        f"--workers={WORKERS}",
        f"--http-header-forward-pattern={pattern}",
        f"--grpc-header-forward-pattern={pattern}",
        source=EXAMPLE / "models",
    )
    launcher.stop_all(wait=True)


@pytest.fixture(autouse=True)
def _version_1(server):
    """Each test begins with the traffic of the configuration."""
    call(server, "/control/traffic.reset", {"model": "price"})


def call(server, path, value=None, headers=()):
    """GET a path, or POST a value, on a connection of its own, which any worker may get."""
    body = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(f"http://{server.http_address}{path}", body, dict(headers))
    try:
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["error"]


def traffic(server, value=None):
    return call(server, "/v2/models/price/traffic", value)


def version_of(server, headers=(), path="", **more):
    rooms = {"name": "rooms", "datatype": "FP32", "shape": [1], "data": [3]}
    answer = call(server, f"/v2/models/price{path}/infer", {"inputs": [rooms], **more}, headers)
    return int(answer["model_version"])


def metrics(server, name, label=""):
    """Return the values of a metric, of its samples with this label; nothing while a worker is missing."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return []
    found = [line for line in lines if re.match(rf"{name}[{{ ]", line) and label in line]
    return [float(line.split()[-1]) for line in found]


def kill_a_worker(server):
    """Kill a worker, and wait until another has taken its place."""
    before = sum(metrics(server, "core_worker_restarts"))
    pid = server.process.pid
    worker = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]

    os.kill(int(worker), signal.SIGKILL)
    end = time.monotonic() + 60
    while sum(metrics(server, "core_worker_restarts")) <= before or metrics(
        server, "core_workers"
    ) != [2]:
        assert time.monotonic() < end
        time.sleep(0.05)


def shares(server, count=60):
    return Counter(version_of(server) for _ in range(count))


def test_a_call_to_one_worker_changes_all(server):
    assert set(shares(server)) == {1}

    found = traffic(server, {"weights": {"1": 0, "2": 1}})

    assert found["traffic"] == {"weights": {"1": 0, "2": 1}}
    assert set(shares(server)) == {2}


def test_counters_are_those_of_all_workers(server):
    before = {each["version"]: each["success"] for each in traffic(server)["versions"]}
    traffic(server, {"weights": {"1": 1, "2": 1}})
    found = shares(server, 100)

    after = {each["version"]: each for each in traffic(server)["versions"]}

    assert {n: each["success"] - before.get(n, 0) for n, each in after.items() if n < 3} == found
    assert after[2]["share"] == 0.5
    counts = metrics(server, "core_traffic_requests", 'result="success"')
    assert counts == [after[number]["success"] for number in sorted(after)]


def test_a_header_decides_over_http_and_grpc(server):
    rule = {"header": "X-Tier", "equals": "gold", "version": 2}
    traffic(server, {"weights": {"1": 1}, "rules": [rule]})
    rooms = triton.InferInput("rooms", [1], "FP32").set_data_from_numpy(np.ones(1, np.float32))
    client = triton.InferenceServerClient(server.grpc_address)

    assert version_of(server, {"X-TIER": "gold"}) == 2
    assert version_of(server, {"X-TIER": "tin"}) == version_of(server) == 1
    answer = client.infer("price", [rooms], headers={"x-tier": "gold"})
    assert answer.get_response().model_version == "2"
    assert client.infer("price", [rooms]).get_response().model_version == "1"


def test_sticky_requests_get_the_same_version_from_each_worker(server):
    traffic(server, {"weights": {"1": 1, "2": 1}, "sticky": {"parameter": "user"}})

    found = {}
    for _ in range(4):
        for user in range(12):
            version = version_of(server, parameters={"user": f"user-{user}"})
            assert found.setdefault(user, version) == version

    assert set(found.values()) == {1, 2}


def test_a_version_in_the_path_is_untouched(server):
    assert version_of(server, path="/versions/2") == 2


def test_the_same_operations_are_there_over_grpc(server):
    with grpc.insecure_channel(server.grpc_address) as channel:

        def ask(method, **arguments):
            do = channel.unary_unary(
                f"/core.control.traffic/{method}",
                StringValue.SerializeToString,
                StringValue.FromString,
            )
            return json.loads(do(StringValue(value=json.dumps(arguments))).value)["result"]

        settings = {"weights": {"2": 1}}
        assert ask("set", model="price", traffic=settings) == settings
        assert set(shares(server, 20)) == {2}
        assert ask("get", model="price")["source"] == "control"
        assert ask("models") == ["price"]
        ask("reset", model="price")
        assert ask("get", model="price")["source"] == "configuration"


@pytest.mark.parametrize(
    ("settings", "status", "text"),
    [
        ({"weights": {"9": 1}}, 400, "version 9 is not ready; ready: 1, 2, 3"),
        ([1], 400, "is [1], expected an object with weights, sticky, rules, shadow, rollback"),
        ({"weights": {"1": 1}, "stiky": {}}, 400, "did you mean 'sticky'?"),
    ],
)
def test_errors_have_a_status_and_change_nothing(server, settings, status, text):
    before = traffic(server)["traffic"]

    found = traffic(server, settings)

    assert found[0] == status and text in found[1]
    assert traffic(server)["traffic"] == before
    assert call(server, "/v2/models/none/traffic")[0] == 404


def test_a_change_is_in_the_audit_and_in_the_log(server):
    traffic(server, {"weights": {"1": 3, "2": 1}})

    log = server.log_text()
    assert re.search(r"audit: traffic\.set by .* done: traffic price", log)
    assert "traffic of model 'price': version 1 75 %, version 2 25 %" in log


def until(condition, limit_s=10.0):
    """Wait until a condition holds; return the seconds."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() < begun + limit_s
        time.sleep(0.02)
    return time.monotonic() - begun


def test_copies_of_all_workers_are_compared(server):
    traffic(server, {"weights": {"1": 1}, "shadow": {"version": 2}})

    assert set(shares(server, 40)) == {1}

    def counted():
        (found,) = traffic(server)["shadows"]
        return found if found["differing"] == 40 else None

    until(counted)
    found = counted()
    assert (found["equal"], found["error"], found["dropped"], found["skipped"]) == (0, 0, 0, 0)
    assert len(found["differences"]) == 20 and found["largest_difference"] == 3.0
    difference = found["differences"][-1]
    assert (difference["output"], difference["index"]) == ("price", [0])
    assert (difference["caller"], difference["shadow"]) == (300.0, 303.0)
    (count,) = metrics(server, "core_traffic_shadow_requests", 'result="differing"')
    assert count == 40


def test_a_bad_version_is_rolled_back_in_all_workers_within_5_s(server):
    objective = {"error_rate": 0.05, "min_requests": 10, "to": 1}
    traffic(server, {"weights": {"1": 50, "3": 50}, "rollback": objective})

    def ask():
        rooms = {"name": "rooms", "datatype": "FP32", "shape": [1], "data": [3]}
        answer = call(server, "/v2/models/price/infer", {"inputs": [rooms]})
        return "error" if isinstance(answer, tuple) else answer["model_version"]

    seconds = until(lambda: ask() and traffic(server)["source"] == "rollback")

    assert seconds < 5
    assert {ask() for _ in range(40)} == {"1"}
    found = traffic(server)
    assert found["traffic"]["weights"] == {"1": 100, "3": 0}
    event = found["rollbacks"][-1]
    assert event["version"] == 3 and "more than 5 %" in event["reason"]
    assert sum(metrics(server, "core_traffic_rollbacks", 'version="3"')) == 1
    log = server.log_text()
    assert "audit: traffic.roll_back by the objective of its traffic done: traffic price" in log
    assert log.count("rolled back version 3: ") == 1


def test_a_worker_that_starts_later_has_the_rollback(server):
    objective = {"error_rate": 0.05, "min_requests": 10, "to": 1}
    traffic(server, {"weights": {"1": 0, "3": 50}, "rollback": objective})
    rooms = {"name": "rooms", "datatype": "FP32", "shape": [1], "data": [3]}
    infer = partial(call, server, "/v2/models/price/infer", {"inputs": [rooms]})
    until(lambda: infer() and traffic(server)["source"] == "rollback")

    kill_a_worker(server)

    assert {infer()["model_version"] for _ in range(40)} == {"1"}
    assert {traffic(server)["rollbacks"][-1]["version"] for _ in range(10)} == {3}


def example(server, version):
    program = [sys.executable, EXAMPLE / "canary.py", server.http_address, version]
    return subprocess.run(program, capture_output=True, text=True)


def test_the_example_compares_version_2_and_walks_it_to_all_requests(server):
    done = example(server, "2")

    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0].startswith("copies to version 2: ") and " 0 error" in lines[0]
    percents = [line.split(" for")[0].strip() for line in lines[1:5]]
    assert percents == ["1 %", "10 %", "50 %", "100 %"]
    assert "200 of 200 answers, 0 errors" in lines[4]


def test_the_example_sees_version_3_rolled_back(server):
    done = example(server, "3")

    assert done.returncode == 1
    assert re.search(r"version 3 is rolled back: \d+ of \d+ requests failed", done.stderr)
    assert set(shares(server)) == {1}
