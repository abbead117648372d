"""Queue size, timeouts and priorities of the dynamic batcher."""

import threading
import time

import numpy as np
import pytest
from conformance.model import Model
from conformance.protocol import grpc_input, http_input
from tritonclient.utils import InferenceServerException


def queued(name, batching):
    return Model(
        name,
        "slow",
        config=f"""
backend: "python"
max_batch_size: 1
input [ {{ name: "MS" data_type: TYPE_INT32 dims: [ 1 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] }} ]
dynamic_batching {{ {batching} }}
""",
    )


MODELS = [
    queued("bounded", "default_queue_policy { max_queue_size: 2 }"),
    queued(
        "rejecting",
        "default_queue_policy { timeout_action: REJECT "
        "default_timeout_microseconds: 200000 allow_timeout_override: true }",
    ),
    queued(
        "patient",
        "default_queue_policy { timeout_action: REJECT "
        "default_timeout_microseconds: 5000000 allow_timeout_override: true }",
    ),
    queued(
        "fixed_timeout",
        "default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 5000000 }",
    ),
    queued(
        "delaying",
        "default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 500000 }",
    ),
    queued("priorities", "priority_levels: 3 default_priority_level: 2"),
    queued(
        "one_bounded_level",
        """priority_levels: 2 default_priority_level: 1
        priority_queue_policy { key: 2 value: { max_queue_size: 1 } }""",
    ),
]


@pytest.fixture(scope="module")
def server(launch):
    return launch(MODELS)


class Calls:
    """Calls that run at a time, and the order in which they ended."""

    def __init__(self, server, model):
        self.server = server
        self.model = model
        self.ended = []
        self.threads = []

    def send(self, label, milliseconds, pause=0.08, **kwargs):
        def run():
            try:
                self.server.http_client().infer(
                    self.model, [http_input("MS", np.array([[milliseconds]], np.int32))], **kwargs
                )
                self.ended.append((label, None))
            except InferenceServerException as error:
                self.ended.append((label, error))

        thread = threading.Thread(target=run)
        thread.start()
        self.threads.append(thread)
        time.sleep(pause)

    def wait(self):
        for thread in self.threads:
            thread.join(60)
        return dict(self.ended)


def test_full_queue_refuses_with_503(server):
    calls = Calls(server, "bounded")
    calls.send("running", 800, pause=0.3)
    for label in ("first", "second", "third", "fourth"):
        calls.send(label, 0)
    found = calls.wait()
    refused = {label for label, error in found.items() if error is not None}
    assert refused == {"third", "fourth"}
    assert all(found[label].status() == "503" for label in refused)


def test_full_queue_is_unavailable_over_grpc(server):
    client = server.grpc_client()
    assert client.is_server_live()  # connected before the queue fills: that may take a while
    calls = Calls(server, "bounded")
    calls.send("running", 800, pause=0.3)
    for label in ("first", "second"):
        calls.send(label, 0)
    with pytest.raises(InferenceServerException) as error:
        client.infer("bounded", [grpc_input("MS", np.array([[0]], np.int32))])
    assert error.value.status() == "StatusCode.UNAVAILABLE"
    calls.wait()


def test_queue_takes_requests_again_when_it_has_room(server):
    calls = Calls(server, "bounded")
    calls.send("after", 0)
    assert calls.wait() == {"after": None}


def test_request_that_waits_too_long_is_rejected_with_503(server):
    calls = Calls(server, "rejecting")
    calls.send("running", 700, pause=0.2)
    calls.send("waiting", 0)
    found = calls.wait()
    assert found["running"] is None
    assert found["waiting"].status() == "503"


def test_rejected_request_counts_as_a_failure(server):
    before = server.stats("rejecting")
    calls = Calls(server, "rejecting")
    calls.send("running", 700, pause=0.2)
    calls.send("waiting", 0)
    calls.wait()
    after = server.stats("rejecting")
    assert (
        after["inference_stats"]["fail"]["count"] - before["inference_stats"]["fail"]["count"] == 1
    )
    assert after["inference_count"] - before["inference_count"] == 1


def test_request_may_shorten_its_timeout(server):
    calls = Calls(server, "patient")
    calls.send("running", 400, pause=0.1)
    calls.send("waiting", 0, timeout=10_000)
    assert calls.wait()["waiting"].status() == "503"


def test_timeout_cannot_be_overridden_unless_it_is_allowed(server):
    calls = Calls(server, "fixed_timeout")
    calls.send("running", 400, pause=0.1)
    calls.send("waiting", 0, timeout=10_000)
    assert calls.wait()["waiting"] is None


def test_request_past_a_delaying_timeout_is_still_answered(server):
    """It may be put behind those in time; the original does not always do so."""
    calls = Calls(server, "delaying")
    calls.send("running", 1200, pause=0.1)
    calls.send("late", 0, pause=0.6)
    calls.send("fresh", 0)
    assert calls.wait() == {"running": None, "late": None, "fresh": None}


def test_lower_number_is_the_higher_priority(server):
    calls = Calls(server, "priorities")
    calls.send("running", 700, pause=0.2)
    for label, priority in (("low", 3), ("default", 0), ("high", 1), ("middle", 2)):
        calls.send(label, 20, priority=priority)
    calls.wait()
    assert [label for label, _ in calls.ended] == ["running", "high", "default", "middle", "low"]


def test_requests_of_the_same_priority_keep_their_order(server):
    calls = Calls(server, "priorities")
    calls.send("running", 700, pause=0.2)
    for label in ("a", "b", "c", "d"):
        calls.send(label, 20, priority=1)
    calls.wait()
    assert [label for label, _ in calls.ended] == ["running", "a", "b", "c", "d"]


def test_priority_outside_the_levels_is_the_default_level(server):
    calls = Calls(server, "priorities")
    calls.send("running", 700, pause=0.2)
    for label, priority in (("low", 3), ("outside", 9)):
        calls.send(label, 20, priority=priority)
    calls.wait()
    assert [label for label, _ in calls.ended] == ["running", "outside", "low"]


def test_level_can_have_its_own_queue_size(server):
    calls = Calls(server, "one_bounded_level")
    calls.send("running", 700, pause=0.2)
    for label, priority in (("low 1", 2), ("low 2", 2), ("high 1", 1), ("high 2", 1)):
        calls.send(label, 0, priority=priority)
    found = calls.wait()
    assert {label for label, error in found.items() if error is not None} == {"low 2"}
