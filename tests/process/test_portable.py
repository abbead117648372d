"""A server with CORE_PORTABLE=1 answers as any other, without what only Linux has."""

import os
from pathlib import Path

import pytest
from conformance.model import Model
from conformance.protocol import wait_until

from .workers import BODY, CONFIG, ENGINES, WHO, children, pids, pids_of_grpc, running

apart = Model(
    "apart",
    "plain",
    config=CONFIG.replace('"thread"', '"process"'),
    files={"1/model.py": WHO},
)
batched = Model(
    "batched",
    "plain",
    config=CONFIG + "max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 2000 }",
    files={"1/model.py": WHO.replace("[os.getpid()]", "[[os.getpid()]]")},
)
PORTABLE = {"CORE_PORTABLE": "1"}
SPECIAL = ("[timerfd]", "[pidfd]", "/memfd:")


def special(server):
    """The kinds of descriptors of Linux that the processes of a server have."""
    found = set()
    waiting = [server.process.pid]
    while waiting:
        pid = waiting.pop()
        waiting += children(pid)
        for link in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = os.readlink(link)
            except OSError:  # it is closed meanwhile
                continue
            found.update(kind for kind in SPECIAL if kind in target)
    return found


def answering(server, model, shape=(1,)):
    """The process that answers a request."""
    inputs = [{"name": "IN", "datatype": "INT32", "shape": shape, "data": [1]}]
    answer = server.infer(model, {"inputs": inputs})
    assert answer.status == 200, answer
    return answer.json["outputs"][0]["data"][0]


@pytest.mark.parametrize("environment", [{"CORE_PORTABLE": "0"}, PORTABLE], ids=str)
def test_what_only_linux_has_is_open_in_its_form_only(launch, environment):
    found = launch([apart, batched], environment=environment)

    assert answering(found, "apart") != answering(found, "batched", (1, 1))
    assert special(found) == (set() if environment == PORTABLE else set(SPECIAL))


def test_a_python_model_that_is_killed_is_replaced(launch):
    found = launch([apart], environment=PORTABLE)
    first = answering(found, "apart")

    os.kill(first, 9)
    while (answer := found.infer("apart", BODY)).status != 200:
        assert "is not healthy" in answer.json["error"]

    assert answer.json["outputs"][0]["data"][0] != first


def test_children_end_with_a_server_that_is_killed(launch):
    found = launch([apart], environment=PORTABLE)
    child = answering(found, "apart")

    found.process.kill()
    found.process.wait()

    assert wait_until(lambda: not running(child))


@pytest.mark.skipif("native" not in ENGINES, reason="grpcio takes no socket of a supervisor")
def test_workers_share_the_sockets_of_their_supervisor(server):
    found = server(environment=PORTABLE)
    workers = set(children(found.process.pid))

    assert len(workers) == 2
    assert pids(found) <= workers and pids_of_grpc(found) <= workers
    assert found.stats("who")["inference_count"] == 80

    os.kill(min(workers), 9)  # the other one answers meanwhile
    assert pids(found, 10)
