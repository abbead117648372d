"""Workers that end, or are ended: the others serve on, and nothing is left behind."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading

from conformance.model import Model
from conformance.protocol import wait_until

from .workers import BODY, CONFIG, WHO, children, pids, running, who


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


def test_a_terminated_worker_drains_and_is_restarted(server):
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


def test_ctrl_c_during_the_start_of_workers_ends_them_silently(tmp_path):
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


def test_while_a_worker_is_gone_connections_reach_the_others(server):
    found = server()
    killed = min(children(found.process.pid))

    os.kill(killed, signal.SIGKILL)
    # Its connections close when all its threads have ended; then the supervisor notices.
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
                "        pid =",
                "        import time; print('begun', flush=True); time.sleep(2)\n        pid =",
            )
        },
    )
    found = server(models=[slow])
    workers = children(found.process.pid)

    def arrived():
        begun = found.log_text().count(
            "begun"
        )  # read first: a request that begins meanwhile is not counted twice
        return begun + found.metric("nv_inference_pending_request_count", model="slow")

    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(found.infer("slow", BODY).status))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    assert wait_until(lambda: arrived() == 4, 60)

    found.process.send_signal(signal.SIGTERM)

    for thread in threads:
        thread.join()
    assert found.process.wait(60) == 0
    assert answers == [200] * 4
    assert not any(map(running, workers))


def named_memory():
    """Return the names in /dev/shm without semaphores of multiprocessing, made by other tests."""
    return {name for name in os.listdir("/dev/shm") if not name.startswith("sem.mp-")}


def test_no_process_survives_a_killed_supervisor(server):
    found = server(models=[who, "add_sub"])  # add_sub has a separate process in each worker
    workers = children(found.process.pid)
    below = [pid for worker in workers for pid in children(worker)]
    assert len(workers) == 2
    shared = named_memory()

    found.process.kill()
    found.process.wait()

    assert wait_until(lambda: not any(map(running, [*workers, *below])), 60)
    assert wait_until(lambda: named_memory() <= shared, 30)
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
        pass  # the server has ended
