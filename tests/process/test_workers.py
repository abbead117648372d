"""A server of several processes: one server to its clients, and nothing of it is left behind."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
from importlib.util import find_spec

import grpc
import numpy as np
import pytest
from conformance.model import Model
from conformance.protocol import wait_until
from conformance.server import StartError
from tritonclient.grpc import service_pb2, service_pb2_grpc

# Says which process it runs in: a thread of the worker.
WHO = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        pid = np.array([os.getpid()], np.int64)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("PID", pid)]) for _ in requests]
"""
CONFIG = """
backend: "python"
input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "PID" data_type: TYPE_INT64 dims: [ 1 ] } ]
parameters { key: "EXECUTION_MODE" value { string_value: "thread" } }
"""
who = Model("who", "plain", config=CONFIG, files={"1/model.py": WHO})
BODY = {"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1], "data": [1]}]}
ENGINES = ["grpcio", "native"]
if find_spec("frontends.grpc.native.connection") is None:  # built without libnghttp2
    ENGINES.remove("native")
# So many connections that both of two workers get some, but for once in 10^12 runs.
CONNECTIONS = 40


def children(pid):
    """The processes that a process has started and that still run."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)


def running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids(server, requests=CONNECTIONS):
    """The processes that answer; each request has a connection of its own."""
    answers = [server.infer("who", BODY) for _ in range(requests)]
    assert {answer.status for answer in answers} == {200}
    return {answer.json["outputs"][0]["data"][0] for answer in answers}


def pids_of_grpc(server, requests=CONNECTIONS):
    """The same over gRPC."""
    found = set()
    for _ in range(requests):
        # Without a pool of its own a channel takes the connection of another one.
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(server.grpc_address, options=options) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            request = service_pb2.ModelInferRequest(model_name="who")
            request.inputs.add(name="IN", datatype="INT32", shape=[1]).contents.int_contents[:] = [
                1
            ]
            (pid,) = np.frombuffer(stub.ModelInfer(request).raw_output_contents[0], np.int64)
            found.add(int(pid))
    return found


def from_every_connection(ask):
    """What is told over many connections, each answer once."""
    return {ask() for _ in range(8)}


@pytest.fixture
def server(launch):
    def start(*options, models=(who,), **kwargs):
        return launch([*models], "--workers=2", "--exit-timeout-secs=10", *options, **kwargs)

    return start


def test_connections_are_spread_over_the_workers(server):
    found = server()

    assert pids(found) == set(children(found.process.pid))


def test_what_the_workers_counted_is_told_together(server):
    found = server()
    assert len(pids(found)) == 2

    for _ in range(4):
        assert found.stats("who")["inference_count"] == CONNECTIONS
        assert found.stats("who")["inference_stats"]["success"]["count"] == CONNECTIONS
        assert found.metric("nv_inference_request_success", model="who") == CONNECTIONS
    assert found.metric("core_workers") == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_grpc_is_shared_and_managed_alike(server, engine):
    found = server(f"--grpc-engine={engine}", "--model-control-mode=explicit", "--load-model=who")

    assert pids_of_grpc(found) == set(children(found.process.pid))
    assert found.stats("who")["inference_count"] == CONNECTIONS

    for _ in range(4):
        with found.grpc_client() as client:
            assert client.is_server_ready() and client.is_model_ready("who")
    with found.grpc_client() as client:
        client.unload_model("who")
    for _ in range(4):
        with found.grpc_client() as client:
            assert not client.is_model_ready("who")
            assert client.get_model_repository_index(as_json=True)["models"][0]["state"] == (
                "UNAVAILABLE"
            )


def test_loads_and_unloads_hold_for_every_connection(server):
    found = server("--model-control-mode=explicit")
    assert from_every_connection(lambda: found.ready("who")) == {False}

    assert found.post("/v2/repository/models/who/load").status == 200

    assert from_every_connection(lambda: found.ready("who")) == {True}
    assert len(pids(found)) == 2
    assert found.post("/v2/repository/models/who/unload").status == 200
    assert from_every_connection(lambda: found.ready("who")) == {False}
    # What the last requests of a worker still hold goes behind the answer.
    assert wait_until(
        lambda: (
            from_every_connection(lambda: found.post("/v2/repository/index").body)
            == {b'[{"name":"who","version":"1","state":"UNAVAILABLE","reason":"unloaded"}]'}
        )
    )


BRINGS = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        pb_utils.load_model("who")

    def execute(self, requests):
        return [pb_utils.InferenceResponse([]) for _ in requests]
"""


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_what_a_python_model_loads_in_its_initialize_is_in_all_workers(server, mode):
    config = CONFIG.replace('"thread"', f'"{mode}"')
    brings = Model("brings", "plain", config=config, files={"1/model.py": BRINGS})
    found = server("--model-control-mode=explicit", "--load-model=brings", models=(who, brings))

    assert from_every_connection(lambda: (found.ready("brings"), found.ready("who"))) == {
        (True, True)
    }
    assert len(pids(found)) == 2


def test_poll_brings_a_model_to_all(server):
    found = server("--model-control-mode=poll", "--repository-poll-secs=1", models=())

    found.add_model(who)

    assert wait_until(lambda: found.ready("who"), 60)
    assert from_every_connection(lambda: found.ready("who")) == {True}


def test_settings_of_the_log_hold_for_every_connection(server):
    found = server()

    assert found.post("/v2/logging", {"log_verbose_level": 3}).json["log_verbose_level"] == 3

    told = from_every_connection(lambda: found.get("/v2/logging").json["log_verbose_level"])
    assert told == {3}


def test_a_worker_that_is_killed_is_replaced_and_the_other_serves_on(server):
    found = server("--model-control-mode=explicit")
    found.post("/v2/repository/models/who/load")
    before = set(children(found.process.pid))
    killed = min(before)
    assert len(before) == 2

    os.kill(killed, signal.SIGKILL)

    assert wait_until(lambda: "is up again" in found.log_text(), 60)
    after = pids(found)
    assert len(after) == 2
    assert after & before == before - {killed}
    assert "was ended by SIGKILL" in found.log_text()
    restarts = [found.metric("core_worker_restarts", worker=number) for number in ("1", "2")]
    assert sorted(restarts) == [0, 1]


def test_requests_over_the_connections_of_other_workers_go_on(server):
    found = server()
    connections = [http.client.HTTPConnection(*found.http_address.split(":")) for _ in range(20)]
    by_worker = {}
    for each in connections:
        by_worker.setdefault(_pid_over(each), []).append(each)
    killed, kept = by_worker

    os.kill(killed, signal.SIGKILL)

    def go_on_until_it_is_replaced():
        assert {_pid_over(each) for each in by_worker[kept]} == {kept}
        return "is up again" in found.log_text()

    assert wait_until(go_on_until_it_is_replaced, 60)
    for each in connections:
        each.close()


def _pid_over(connection):
    connection.request("POST", "/v2/models/who/infer", json.dumps(BODY))
    return json.loads(connection.getresponse().read())["outputs"][0]["data"][0]


def test_a_worker_that_somebody_ends_drains_and_is_started_again(server):
    found = server()

    os.kill(min(children(found.process.pid)), signal.SIGTERM)

    assert wait_until(lambda: "is up again" in found.log_text(), 60)
    assert "ended with status 0" in found.log_text()
    assert len(pids(found)) == 2


def test_ctrl_c_reaches_all_processes_and_drains_them(server):
    found = server()
    workers = children(found.process.pid)

    for pid in (*workers, found.process.pid):  # as a terminal does
        os.kill(pid, signal.SIGINT)

    assert found.process.wait(60) == 0
    assert not any(map(running, workers))
    assert "was ended by" not in found.log_text()


def test_ctrl_c_while_the_workers_start_ends_them_without_a_word(tmp_path):
    ports = [f"--{each}-port=0" for each in ("http", "grpc", "metrics")]
    done = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "core.serve",
            "--workers=2",
            f"--model-repository={tmp_path}",
            *ports,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert wait_until(lambda: len(children(done.pid)) == 2, 60)

    for pid in (*children(done.pid), done.pid):
        os.kill(pid, signal.SIGINT)

    log, _ = done.communicate(timeout=60)
    assert done.returncode == 0
    assert "Signal (2) received." in log
    assert "KeyboardInterrupt" not in log


def test_traces_of_each_worker_are_in_a_file_of_its_own(server, tmp_path):
    file = tmp_path / "trace"
    found = server(
        f"--trace-config=triton,file={file}",
        "--trace-config=level=TIMESTAMPS",
        "--trace-config=rate=1",
    )
    assert len(pids(found)) == 2

    found.stop()

    assert sorted(path.name for path in tmp_path.iterdir()) == ["trace.worker-1", "trace.worker-2"]


def test_one_worker_is_a_server_without_others(launch):
    found = launch([who], "--workers=1")

    assert pids(found, 2) == {found.process.pid}
    assert children(found.process.pid) == []
    assert "core_workers" not in found.metrics_text()


def test_while_a_worker_is_gone_connections_reach_the_others(server):
    found = server()
    killed = min(children(found.process.pid))

    os.kill(killed, signal.SIGKILL)
    # Its connections are gone when all its threads are, and then the supervisor hears of it.
    assert wait_until(lambda: "was ended by SIGKILL" in found.log_text(), 60)

    assert killed not in pids(found, 20)
    assert found.get("/v2/health/ready").status == 200


def test_a_signal_drains_all_workers(server):
    slow = Model(
        "slow",
        "plain",
        config=CONFIG,
        files={
            "1/model.py": WHO.replace(
                "        pid =", "        import time; time.sleep(2)\n        pid ="
            )
        },
    )
    found = server(models=[slow])
    workers = children(found.process.pid)
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(found.infer("slow", BODY).status))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    assert wait_until(
        lambda: found.metric("nv_inference_pending_request_count", model="slow") > 0, 60
    )

    found.process.send_signal(signal.SIGTERM)

    for thread in threads:
        thread.join()
    assert found.process.wait(60) == 0
    assert answers == [200] * 4
    assert not any(map(running, workers))


def test_nothing_is_left_when_the_supervisor_is_killed(server):
    found = server(models=[who, "add_sub"])  # add_sub has a process of its own in each worker
    workers = children(found.process.pid)
    below = [pid for worker in workers for pid in children(worker)]
    assert len(workers) == 2
    shared = set(os.listdir("/dev/shm"))

    found.process.kill()
    found.process.wait()

    assert wait_until(lambda: not any(map(running, [*workers, *below])), 60)
    assert set(os.listdir("/dev/shm")) <= shared
    with socket.socket() as port:
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port.bind(("127.0.0.1", found.http_port))


def test_a_second_signal_ends_everything_at_once(server):
    stuck = Model(
        "stuck",
        "plain",
        config=CONFIG,
        files={
            "1/model.py": WHO.replace(
                "        pid =", "        import time; time.sleep(600)\n        pid ="
            )
        },
    )
    found = server("--exit-timeout-secs=500", models=[stuck])
    workers = children(found.process.pid)
    # Three requests: one of two workers has two of them, so that one waits.
    threads = [threading.Thread(target=_ask_in_vain, args=(found,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    pending = "nv_inference_pending_request_count"
    assert wait_until(lambda: found.metric(pending, model="stuck") > 0, 60)
    found.process.send_signal(signal.SIGTERM)
    assert wait_until(lambda: "Signal (15) received." in found.log_text(), 60)

    found.process.send_signal(signal.SIGTERM)

    assert found.process.wait(60) == 1
    for thread in threads:
        thread.join()
    assert wait_until(lambda: not any(map(running, workers)), 60)


def _ask_in_vain(server):
    try:
        server.infer("stuck", BODY)
    except (OSError, http.client.HTTPException):
        pass  # the server has gone


def test_a_model_that_fails_at_the_start_ends_the_server_with_one_error(launch):
    with pytest.raises(StartError) as caught:
        launch(["fail_init"], "--workers=2")

    assert caught.value.returncode == 1
    error = "error: creating server: Internal - failed to load all models"
    assert caught.value.log.count(error) == 1
    assert caught.value.log.rstrip().endswith(error)


def test_sequences_are_refused_at_the_start(launch):
    found = launch(["sequence_direct", who], "--workers=2", "--exit-on-error=false", wait="live")

    assert wait_until(lambda: "workers are up" in found.log_text(), 60)
    entries = found.post("/v2/repository/index").json
    (refused,) = [entry for entry in entries if entry["name"] == "sequence_direct"]
    assert refused["state"] == "UNAVAILABLE"
    assert "has sequence_batching" in refused["reason"]


def test_what_is_not_shared_is_said_by_name(server):
    found = server("--cache-config=local,size=1048576", "--rate-limit=execution_count")

    log = found.log_text()
    assert "--cache-config: with --workers=2 each worker has a cache" in log
    assert "--rate-limit: with --workers=2 each worker has all resources" in log


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "core.serve", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("text", ["0", "-1", "two", "", "9999"])
def test_a_number_of_workers_that_cannot_be_is_refused(text):
    done = command(f"--workers={text}")

    assert done.returncode == 1
    assert 'Bad option: "--workers"' in done.stderr


def test_a_port_in_use_ends_the_start_with_one_error(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        done = command(
            "--workers=2",
            f"--model-repository={tmp_path}",
            "--http-address=127.0.0.1",
            f"--http-port={port}",
        )

    assert done.returncode == 1
    error = f"error: creating server: Unavailable - Socket '127.0.0.1:{port}' already in use"
    assert done.stderr.splitlines()[-1] == error


def test_latencies_of_all_workers_are_told_together(server):
    found = server(
        "--metrics-config=histogram_latencies=true", "--metrics-config=summary_latencies=true"
    )
    assert len(pids(found)) == 2

    metrics = found.metrics()
    of_who = {
        (name, labels): value
        for (name, labels), value in metrics.items()
        if ("model", "who") in labels
    }

    for name in ("nv_inference_request_duration_histogram_us", "nv_inference_request_summary_us"):
        (count,) = (value for (each, _), value in of_who.items() if each == f"{name}_count")
        assert count == CONNECTIONS
    quantiles = {
        float(dict(labels)["quantile"]): value
        for (name, labels), value in of_who.items()
        if name == "nv_inference_request_summary_us"
    }
    assert list(dict(sorted(quantiles.items())).values()) == sorted(quantiles.values())
    for name in ("core_process_cpu_seconds_total", "core_event_loop_lag_seconds_count"):
        workers = {dict(labels)["worker"] for each, labels in metrics if each == name}
        assert workers == {"1", "2"}
    ((_, loads),) = (
        (labels, value)
        for (name, labels), value in of_who.items()
        if name == "core_model_loads_total" and ("result", "success") in labels
    )
    assert loads == 1
