"""What a replica costs that dies, falls ill or leaves under load.

`make test-ray ARGS=-rP` shows the figures.
"""

import json
import os
import signal
import threading
import time
import urllib.request

import pytest
from core_ray import CoreDeployment, CoreReplica
from ray import serve

MS = 50  # of a request
CLIENTS = 8


@pytest.fixture
def two(run, repository):
    """Two replicas, which also say which process they are."""

    class Replica(CoreReplica):
        async def pid(self):
            return os.getpid()

    deployment = serve.deployment(
        Replica,
        num_replicas=2,
        max_ongoing_requests=CoreDeployment.max_ongoing_requests,
        graceful_shutdown_timeout_s=60,
        health_check_period_s=1,
        health_check_timeout_s=30,
        ray_actor_options={"num_cpus": 0.5},
    )
    return run(deployment.bind(model_repository=str(repository)), "two", "/two")


def processes(handle):
    """Return the processes that answer now: each of 30 calls reaches one of the replicas."""
    calls = [handle.pid.remote() for _ in range(30)]
    return {each.result(timeout_s=120) for each in calls}


def both_processes(handle):
    """Return the processes of both replicas, once the handle reaches both."""
    found = set()

    def are_two():
        found.clear()
        found.update(processes(handle))
        return len(found) == 2

    wait_for(are_two)
    return found


def wait_for(condition, seconds=180):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.5)


def test_a_killed_replica_costs_only_the_requests_that_it_had_accepted(two, load):
    before = both_processes(two)
    clients = load(two, "/two", MS)
    clients.set(CLIENTS)
    wait_for(lambda: clients.answered > 20)

    killed = before.pop()
    os.kill(killed, signal.SIGKILL)
    killed_s = time.monotonic()  # requests that are sent until here may have reached it
    wait_for(lambda: len(processes(two) - {killed}) == 2)
    two_s = time.monotonic() - killed_s
    answered = clients.answered
    wait_for(lambda: clients.answered > answered + 20)
    clients.end()

    print(
        f"{clients.answered} answered, {len(clients.failed)} failed; two replicas {two_s:.0f} s after "
        "one was killed"
    )
    # Ray has sent all others, also those that reached the dead replica, to the other one.
    assert all(sent_s < killed_s for sent_s, _, _ in clients.failed), clients.failed
    assert len(clients.failed) <= CLIENTS


def test_a_replica_whose_model_falls_ill_is_replaced_without_a_lost_request(two, load, repository):
    before = both_processes(two)
    clients = load(two, "/two", MS)
    clients.set(CLIENTS)
    start = time.monotonic()

    (repository / "wait" / "1" / "sick").touch()

    # The one that is ill leaves, and another one comes.
    wait_for(lambda: len(both_processes(two) & before) == 1)
    replaced_s = time.monotonic() - start
    clients.end()

    print(
        f"{clients.answered} answered, {len(clients.failed)} failed; the ill replica was replaced in "
        f"{replaced_s:.0f} s"
    )
    assert clients.failed == []
    assert clients.answered > CLIENTS


def test_requests_at_the_port_of_a_replica_are_answered_when_it_leaves(run, repository):
    bound = CoreDeployment.bind(
        model_repository=str(repository), http_port=0, http_address="127.0.0.1"
    )
    handle = run(bound, "leaving", "/leaving")
    port = handle.ports.remote().result(timeout_s=60)["http"]
    found = []
    client = threading.Thread(target=lambda: found.append(asked(port, 3000)))
    client.start()
    time.sleep(1)  # until the server has the request

    serve.delete("leaving")

    client.join()
    assert found == [3000]
    with pytest.raises(OSError):
        asked(port, 1)


def asked(port, ms):
    """Ask the model `wait` at the port of a replica."""
    tensor = {"name": "ms", "shape": [1, 1], "datatype": "INT32", "data": [ms]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v2/models/wait/infer", json.dumps({"inputs": [tensor]}).encode()
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)["outputs"][0]["data"][0]
