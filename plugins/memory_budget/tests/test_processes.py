"""Real servers over HTTP and gRPC, as a user starts them: docs/serve/memory-budget.md."""

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.http as triton_http
from memory_budget.models import write_models
from memory_budget.run import _await_ready
from memory_budget.sampler import private_bytes
from soak.server import Server

MODELS = 6


@pytest.fixture
def serve(tmp_path):
    """Start a server over 6 models of 8 MiB, m0 to m5, on request; `python` of them are Python models."""
    servers = []

    def start(*options, python=0):
        (tmp_path / "models").mkdir()
        write_models(tmp_path / "models", MODELS, 8, 8, 1, python)
        server = Server(tmp_path, "--load-on-request=true", *options)
        servers.append(server)
        _await_ready(server)
        return server

    yield start
    for server in servers:
        server.signal()
        assert server.process.wait(60) == 0, server.last_words()
        server.kill()


def get(server, path):
    with urllib.request.urlopen(f"http://localhost:{server.ports.http}{path}") as response:
        return json.loads(response.read() or b"null")


def ask(server, model):
    body = {"inputs": [{"name": "i", "shape": [1], "datatype": "INT64", "data": [0]}]}
    url = f"http://localhost:{server.ports.http}/v2/models/{model}/infer"
    request = urllib.request.Request(url, json.dumps(body).encode())
    with urllib.request.urlopen(request) as response:
        return json.loads(response.read())["outputs"][0]["data"][0]


def index(server):
    return triton_http.InferenceServerClient(
        f"localhost:{server.ports.http}"
    ).get_model_repository_index()


def account(server):
    return get(server, "/control/model_memory.account")["result"]


def loaded(each):
    return [row["name"] for row in each["models"] if row["state"] == "loaded"]


def test_http_requests_find_more_models_than_memory(serve):
    server = serve("--memory-budget=36M")

    for number in (*range(MODELS), *range(MODELS)):
        assert ask(server, f"m{number}") == 1000 * number

    (found,) = account(server)
    assert 1 <= len(loaded(found)) < MODELS
    assert found["used"]["host"] <= 36 << 20
    assert "unloaded: memory" in {row.get("reason") for row in index(server)}


def test_the_index_over_http_shows_the_memory_of_ready_versions_and_grpc_serves_as_before(serve):
    server = serve("--memory-account=true")
    ask(server, "m0")

    rows = {row["name"]: row for row in index(server)}

    (found,) = account(server)
    (of_m0,) = [row["bytes"] for row in found["models"] if row["name"] == "m0"]
    assert rows["m0"]["memory"] == of_m0
    assert of_m0["host"] > 4 << 20
    assert "memory" not in rows["m1"]
    client = triton.InferenceServerClient(f"localhost:{server.ports.grpc}")
    assert {row.name for row in client.get_model_repository_index().models} == rows.keys()


def test_without_a_measurement_the_index_has_the_members_of_triton_only(serve):
    server = serve()
    ask(server, "m0")

    assert all(row.keys() <= {"name", "version", "state", "reason"} for row in index(server))


def test_grpc_requests_and_streams_wait_for_the_load(serve):
    server = serve("--memory-budget=36M")
    given = triton.InferInput("i", [1], "INT64").set_data_from_numpy(np.zeros(1, np.int64))
    client = triton.InferenceServerClient(f"localhost:{server.ports.grpc}")

    assert client.is_model_ready("m1")
    assert client.get_model_metadata("m1").inputs[0].name == "i"
    for number in range(MODELS):
        assert client.infer(f"m{number}", [given]).as_numpy("y")[0] == 1000 * number
    answered, found = threading.Event(), []

    def arrived(result, error):
        found.append((result, error))
        if len(found) == MODELS:
            answered.set()

    client.start_stream(arrived)
    for number in range(MODELS):
        client.async_stream_infer(f"m{number}", [given], request_id=str(number))
    assert answered.wait(60)
    client.stop_stream()

    assert [error for _, error in found] == [None] * MODELS
    values = {r.get_response().id: r.as_numpy("y")[0] for r, _ in found}
    assert values == {str(number): 1000.0 * number for number in range(MODELS)}


def test_what_is_measured_is_what_the_kernel_counts(serve):
    server = serve("--memory-account=true")
    ask(server, "m0")
    before = private_bytes(server.pid)

    for number in range(1, MODELS):
        ask(server, f"m{number}")
    grown = private_bytes(server.pid) - before

    (found,) = account(server)
    rows = {row["name"]: row for row in found["models"]}
    measured = [rows[f"m{number}"]["bytes"]["host"] for number in range(1, MODELS)]
    assert all(rows[f"m{number}"]["source"] == "measured" for number in range(1, MODELS))
    assert sum(measured) == pytest.approx(grown, rel=0.25)
    assert all(size == pytest.approx(8 << 20, rel=0.25) for size in measured)
    usage = get(server, "/v2/models/m1/stats")["model_stats"][0]["memory_usage"]
    assert usage == [{"type": "CPU", "id": 0, "byte_size": measured[0]}]


def test_a_trace_file_shows_the_wait_for_a_load(serve, tmp_path):
    file = tmp_path / "trace"
    options = ("level=TIMESTAMPS", "rate=1", f"triton,file={file}", "triton,log-frequency=1")
    server = serve("--memory-budget=36M", *(f"--trace-config={each}" for each in options))

    ask(server, "m0")
    ask(server, "m0")

    loads, none = (stamps(tmp_path / f"trace.{number}") for number in (0, 1))
    order = ["REQUEST_START", "MODEL_LOAD_START", "MODEL_LOAD_END", "COMPUTE_START", "REQUEST_END"]
    assert sorted(order, key=loads.get) == order
    assert "MODEL_LOAD_START" not in none and "REQUEST_END" in none


def stamps(file):
    """Return name → nanoseconds of the timestamps in a trace file, once it is there."""
    end = time.monotonic() + 60
    while True:
        try:
            entries = json.loads(file.read_text())
            break
        except (FileNotFoundError, json.JSONDecodeError):  # it is being written
            assert time.monotonic() < end, f"{file} is not there or not complete"
            time.sleep(0.05)
    return {each["name"]: each["ns"] for entry in entries for each in entry.get("timestamps", ())}


def test_a_python_model_counts_with_its_process(serve, tmp_path):
    pytest.importorskip("backend_python")
    server = serve(python=2)

    name = next(tmp_path.glob("models/*/1/model.py")).parts[-3]
    assert ask(server, name) == 1000 * int(name[1:])

    (found,) = account(server)
    (row,) = [each for each in found["models"] if each["name"] == name]
    assert row["source"] == "measured"
    assert 8 << 20 < row["bytes"]["host"] < 200 << 20


def test_a_model_that_is_too_large_is_refused_over_http_with_the_numbers(serve):
    server = serve("--memory-budget=4M")

    with pytest.raises(urllib.error.HTTPError) as error:
        ask(server, "m1")

    assert error.value.code == 503
    text = json.loads(error.value.read())["error"]
    assert "needs 8.8 MiB, the budget is 4.0 MiB" in text
    assert get(server, "/v2/models/m2")["name"] == "m2"


def test_each_of_two_workers_has_half_of_the_budget(serve):
    pytest.importorskip("core_workers")
    server = serve("--workers=2", "--memory-budget=72M")

    for _ in range(3):
        for number in range(MODELS):
            assert ask(server, f"m{number}") == 1000 * number

    first, second = account(server)
    assert (first["worker"], second["worker"]) == (1, 2)
    assert first["budget"] == second["budget"] == {"host": 36 << 20}
    assert loaded(first) or loaded(second)
    assert all(each["used"]["host"] <= 36 << 20 for each in (first, second))


def test_the_index_shows_the_sum_of_the_workers(serve):
    pytest.importorskip("core_workers")
    server = serve("--workers=2", "--memory-account=true", "--load-on-request=false")

    (of_m0,) = [row["memory"] for row in index(server) if row["name"] == "m0"]

    rows = [row for each in account(server) for row in each["models"] if row["name"] == "m0"]
    assert len(rows) == 2
    assert of_m0 == {"host": sum(row["bytes"]["host"] for row in rows)}


def test_the_example_asks_twelve_models_on_the_memory_of_three():
    program = Path(__file__).parents[3] / "examples" / "memory_budget.py"

    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)

    assert [line for line in done.stdout.splitlines() if "·" in line] == [
        f"scale{number}: {number} · 2 = {2 * number}" for number in [*range(12)] * 2
    ]
    names = done.stdout.splitlines()[-1].removeprefix("in memory: ").split(", ")
    assert len(names) == 3 and "scale11" in names
