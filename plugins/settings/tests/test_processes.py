"""A real server of two workers with the model of docs/operate/settings.md: HTTP, gRPC, the example."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from itertools import count
from pathlib import Path

import grpc
import pytest
from conformance.launcher import Launcher
from google.protobuf.wrappers_pb2 import StringValue

EXAMPLE = Path(__file__).parents[3] / "examples" / "settings"
SETTINGS = "/v2/models/score/settings"
# Each request that waits for a millisecond comes after the others, and none is refused.
LATE = {"timeout_action": "DELAY", "default_timeout_microseconds": 1000, "max_queue_size": 100}
OPTIONS = (
    *("--workers=2", "--settings-write", "--cache-config=local,size=1048576"),
    *("--rate-limit=execution_count", "--rate-limit-resource=R:1"),
)
CHANGES = int(os.environ.get("CORE_SETTINGS_CHANGES", "40"))  # make test-settings: 1,000


@pytest.fixture(scope="session")
def server(pytestconfig):
    pytest.importorskip("core_workers")
    pytest.importorskip("backend_python")
    launcher = Launcher(pytestconfig)
    launcher.kind = "core"
    yield launcher.start(["score"], *OPTIONS, source=EXAMPLE / "models")
    launcher.stop_all(wait=True)


@pytest.fixture(autouse=True)
def _as_configured(server):
    """Each test begins with the settings of the configuration."""
    call(server, "/control/model_settings.reset", {"model": "score"})


def call(server, path, value=None):
    """GET a path, or POST a value, on a connection of its own, which any worker may get."""
    body = None if value is None else json.dumps(value).encode()
    try:
        with urllib.request.urlopen(f"http://{server.http_address}{path}", body) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["error"]


def batching(**fields):
    return {"dynamic_batching": fields}


def delays(server, calls=24):
    """Return the delays that as many connections see, of both workers most likely."""
    found = [call(server, SETTINGS)["now"]["dynamic_batching"] for _ in range(calls)]
    return {each["max_queue_delay_microseconds"] for each in found}


def test_a_call_to_one_worker_changes_all(server):
    assert delays(server) == {20000}

    found = call(server, SETTINGS, batching(max_queue_delay_microseconds=300))

    assert found["settings"] == batching(max_queue_delay_microseconds=300)
    assert delays(server) == {300}
    histories = [json.dumps(call(server, SETTINGS)["history"]) for _ in range(24)]
    assert len(set(histories)) == 1
    assert json.loads(Path(found["written"]).read_text())["number"] == found["number"]


def test_wrong_input_is_refused_with_the_field(server):
    assert call(server, SETTINGS, batching(max_queue_delay_microsecond=1)) == (
        400,
        "settings of model 'score': dynamic_batching has no field \"max_queue_delay_microsecond\"; did you "
        "mean 'max_queue_delay_microseconds'?; its fields: preferred_batch_size, "
        "max_queue_delay_microseconds, preserve_ordering, priority_levels, default_priority_level, "
        "default_queue_policy, priority_queue_policy",
    )
    assert call(server, SETTINGS, [1])[0] == 400
    assert call(server, SETTINGS.replace("score", "none"), {})[0] == 404
    assert delays(server) == {20000}


def test_the_same_operations_are_there_over_grpc(server):
    with grpc.insecure_channel(server.grpc_address) as channel:

        def ask(method, **arguments):
            do = channel.unary_unary(
                f"/core.control.model_settings/{method}",
                StringValue.SerializeToString,
                StringValue.FromString,
            )
            return json.loads(do(StringValue(value=json.dumps(arguments))).value)["result"]

        number = ask("set", model="score", settings=batching(priority_levels=0))["number"]
        assert ask("models") == {"score": number}
        assert ask("rollback", model="score", number=0)["number"] == number + 1
        assert ask("get", model="score")["settings"] == {}


def test_a_worker_that_starts_later_has_settings_and_history(server):
    call(server, SETTINGS, batching(max_queue_delay_microseconds=1))
    found = call(server, SETTINGS, batching(max_queue_delay_microseconds=2))

    kill_a_worker(server)

    assert delays(server, 40) == {2}
    numbers = [call(server, SETTINGS)["history"][-1]["number"] for _ in range(40)]
    assert set(numbers) == {found["number"]}
    assert call(server, SETTINGS, batching(max_queue_delay_microseconds=3))["number"] == (
        found["number"] + 1
    )


def kill_a_worker(server):
    """Kill a worker, and wait until another has taken its place."""
    pid = server.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children")
    before = children.read_text().split()

    os.kill(int(before[0]), signal.SIGKILL)
    end = time.monotonic() + 60
    while metric(server, "core_workers") != 2 or before[0] in children.read_text().split():
        assert time.monotonic() < end
        time.sleep(0.05)


def metric(server, name):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/metrics") as answer:
            text = answer.read().decode()
    except OSError:
        return 0
    return sum(float(each) for each in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M))


@pytest.mark.timeout(180 + CHANGES)
def test_changes_under_load_lose_nothing(server):
    before = metric(server, "nv_inference_request_success")
    hits = metric(server, "nv_cache_num_hits_per_model")
    answers, ends = [], threading.Event()

    def client():
        for number in count():
            if ends.is_set():
                return
            x = number % 5  # the same again and again, for the cache
            tensor = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [x]}
            answers.append((x, call(server, "/v2/models/score/infer", {"inputs": [tensor]})))

    clients = [threading.Thread(target=client) for _ in range(6)]
    for each in clients:
        each.start()
    choices = [
        batching(max_queue_delay_microseconds=0, preserve_ordering=None),
        batching(max_queue_delay_microseconds=1000, preferred_batch_size=[4]),
        {"response_cache": {"enable": True}},
        batching(preferred_batch_size=None, priority_levels=2, default_priority_level=1),
        batching(default_queue_policy=LATE),
        {"rate_limiter": {"score": {"priority": 2, "resources": [{"name": "R", "count": 1}]}}},
        batching(priority_levels=None, default_priority_level=None),
        batching(default_queue_policy=None, preserve_ordering=True),
        {"response_cache": {"enable": False}, "rate_limiter": None},
    ]
    try:
        done = [call(server, SETTINGS, choices[n % len(choices)]) for n in range(CHANGES)]
    finally:
        ends.set()
        for each in clients:
            each.join()

    assert [each for each in done if type(each) is not dict] == []
    numbers = [each["number"] for each in done]
    assert numbers == list(range(numbers[0], numbers[0] + CHANGES))
    assert [each for _, each in answers if type(each) is not dict] == []
    assert {each["outputs"][0]["data"][0] - 2 * x for x, each in answers} == {0}
    assert metric(server, "nv_inference_request_success") - before == len(answers)
    # The metric is there while the model has a cache; its count is that of all times it had one.
    call(server, SETTINGS, {"response_cache": {"enable": True}})
    assert metric(server, "nv_cache_num_hits_per_model") > hits


def test_the_example_compares_settings_and_goes_back(server):
    found = subprocess.run(
        [sys.executable, EXAMPLE / "compare.py", server.http_address],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert [re.sub(r"^number \d+, |: .*", "", line) for line in lines[:3]] == [
        "a delay of 20 ms",
        "no delay",
        "no delay, 2 may wait",
    ]
    assert all(int(re.search(r"(\d+) refused", line)[1]) == 0 for line in lines[:2])
    assert lines[-1].endswith("dynamic_batching.max_queue_delay_microseconds 0 → 20000")
    assert delays(server) == {20000}
