"""A server of several processes is one server to its clients."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest
from conformance.model import Model
from conformance.protocol import wait_until
from conformance.server import StartError

from .workers import (
    BODY,
    CONFIG,
    CONNECTIONS,
    ENGINES,
    WHO,
    children,
    from_every_connection,
    pids,
    pids_of_grpc,
    who,
)


def test_connections_are_distributed_over_the_workers(server):
    found = server()

    assert pids(found) == set(children(found.process.pid))


def test_counters_of_all_workers_are_added(server):
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
    # The memory of a worker's last requests is freed after the response.
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
def test_a_model_that_initialize_loads_is_in_all_workers(server, mode):
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


def test_each_worker_writes_its_traces_to_a_separate_file(server, tmp_path):
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


def test_a_model_that_fails_at_the_start_ends_the_server_with_one_error(launch):
    with pytest.raises(StartError) as caught:
        launch(["fail_init"], "--workers=2")

    assert caught.value.returncode == 1
    error = "error: creating server: Internal - failed to load all models"
    assert caught.value.log.count(error) == 1
    assert caught.value.log.rstrip().splitlines()[-1].startswith(f"{error}: 'fail_init' cannot be")


def test_sequences_are_refused_at_the_start(launch):
    found = launch(["sequence_direct", who], "--workers=2", "--exit-on-error=false", wait="live")

    assert wait_until(lambda: "workers are up" in found.log_text(), 60)
    entries = found.post("/v2/repository/index").json
    (refused,) = [entry for entry in entries if entry["name"] == "sequence_direct"]
    assert refused["state"] == "UNAVAILABLE"
    assert "has sequence_batching" in refused["reason"]


def test_per_worker_settings_are_logged_by_name(server):
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
    assert done.stderr.splitlines()[-1].startswith(f"{error}; choose another port with --http-port")


def test_latencies_of_all_workers_are_combined(server):
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


def test_the_limit_of_a_caller_is_that_of_all_workers_together(server):
    found = server("--limit-rate=0.001", "--limit-burst=5")

    statuses = [found.infer("who", BODY).status for _ in range(CONNECTIONS)]

    assert statuses == [200] * 5 + [429] * (CONNECTIONS - 5)


def test_running_requests_of_a_dead_worker_are_released(server, tmp_path):
    note = tmp_path / "pid"
    stays = Model(
        "stays",
        "plain",
        config=CONFIG,
        files={
            "1/model.py": WHO.replace(
                "        pid =",
                f"        open({str(note)!r}, 'w').write(f'{{os.getpid()}}\\n')\n"
                "        import time; time.sleep(600)\n        pid =",
            )
        },
    )
    found = server("--limit-concurrency=1", models=(who, stays))
    thread = threading.Thread(target=_ask_in_vain, args=(found,))
    thread.start()
    assert wait_until(lambda: note.exists() and note.read_text().endswith("\n"), 60)
    assert from_every_connection(lambda: found.infer("who", BODY).status) == {429}

    os.kill(int(note.read_text()), signal.SIGKILL)

    thread.join()
    assert wait_until(lambda: _answers(found), 60)


def _answers(server):
    """Whether a request is answered; a connection that waited for the dead worker is reset."""
    try:
        return server.infer("who", BODY).status == 200
    except (OSError, http.client.HTTPException):
        return False


def _ask_in_vain(server):
    try:
        server.infer("stays", BODY)
    except (OSError, http.client.HTTPException):
        pass  # the worker has ended
