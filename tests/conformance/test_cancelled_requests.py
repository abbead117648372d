"""A cancelled request takes no execution: in a queue, in a batch that forms, before a resource."""

import threading
import time

import numpy as np
import pytest
from conformance.model import Model
from conformance.platform_port import skip_original
from conformance.protocol import grpc_input, wait_until

SLOW = 3000  # milliseconds
BEGINS_S = 0.5  # a request alone runs after this time, so that those behind it wait
LIMITED = """
backend: "python"
max_batch_size: 0
input [ { name: "MS" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU rate_limiter { resources [ { name: "R" count: 1 } ] } } ]
"""
ENSEMBLE = """
platform: "ensemble"
input [ { name: "MS" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] } ]
ensemble_scheduling { step [
  { model_name: "slow" model_version: -1
    input_map { key: "MS" value: "MS" } output_map { key: "OUTPUT0" value: "between" } },
  { model_name: "slow_too" model_version: -1
    input_map { key: "MS" value: "between" } output_map { key: "OUTPUT0" value: "OUTPUT0" } }
] }
"""


@pytest.fixture(scope="module")
def server(launch):
    return launch(
        [
            "slow",
            Model("slow_too", "slow"),
            Model("steps", "slow", config=ENSEMBLE),
            "batch_recorder",
            Model("holder", "slow", config=LIMITED),
            Model("limited", "slow", config=LIMITED),
        ],
        "--rate-limit=execution_count",
        "--rate-limit-resource=R:1",
    )


class Calls:
    """Unary calls over gRPC that run together."""

    def __init__(self, server):
        self.client = server.grpc_client()
        self.ended = []
        self.results = {}

    def send(self, model, **inputs):
        """Send a request of one element for each input; return its call."""
        event = threading.Event()
        number = len(self.ended)
        self.ended.append(event)

        def answered(result, error):
            self.results[number] = error or result
            event.set()

        arrays = {name: np.array(value, np.int32) for name, value in inputs.items()}
        tensors = [grpc_input(name, array) for name, array in arrays.items()]
        return self.client.async_infer(model, tensors, callback=answered)

    def wait(self):
        assert all(each.wait(60) for each in self.ended)
        return [self.results[number] for number in range(len(self.ended))]


def executions(server, model):
    return server.stats(model)["execution_count"]


def waiting(server, model):
    return server.metric("nv_inference_pending_request_count", model=model, version="1")


def cancelled(server, model):
    return server.metric(
        "nv_inference_request_failure", model=model, version="1", reason="CANCELED"
    )


def cancel_behind(server, holder, model, count=3, milliseconds=SLOW):
    """Cancel requests that wait while another one runs; return the executions of the model meanwhile."""
    before, failed = executions(server, model), cancelled(server, model)
    calls = Calls(server)
    calls.send(holder, MS=[milliseconds])
    time.sleep(BEGINS_S)
    queued = [calls.send(model, MS=[1]) for _ in range(count)]
    assert wait_until(lambda: waiting(server, model) == count)
    for each in queued:
        each.cancel()
    found = calls.wait()
    assert all("ancel" in str(each) for each in found[1:])
    assert wait_until(lambda: cancelled(server, model) == failed + count)
    return executions(server, model) - before


def test_a_request_that_is_cancelled_in_the_queue_is_not_executed(server, launcher):
    skip_original(launcher, "without a batcher, the check before the dispatch came with 2.74")

    assert cancel_behind(server, "slow", "slow") == 1


def test_a_request_that_is_cancelled_while_it_waits_for_a_resource_is_not_executed(
    server, launcher
):
    skip_original(launcher, "the check before the dispatch came with 2.74")

    assert cancel_behind(server, "holder", "limited") == 0


def test_a_request_that_is_cancelled_leaves_the_batch_that_forms(server, launcher):
    skip_original(launcher, "a batch that has formed keeps its cancelled requests, until 2.74")
    calls = Calls(server)
    calls.send("batch_recorder", INPUT0=[[1000 + SLOW]])
    time.sleep(BEGINS_S)
    queued = [calls.send("batch_recorder", INPUT0=[[number]]) for number in range(4)]
    assert wait_until(lambda: waiting(server, "batch_recorder") == 4)

    queued[1].cancel()
    queued[2].cancel()
    _, first, *gone, last = calls.wait()

    assert all("ancel" in str(each) for each in gone)
    assert [int(each.as_numpy("REQUESTS")[0, 0]) for each in (first, last)] == [2, 2]
    assert [int(each.as_numpy("VALUE")[0, 0]) for each in (first, last)] == [0, 3]


def test_an_ensemble_that_is_cancelled_runs_no_further_step(server, launcher):
    skip_original(launcher, "a step that is ready may run once more")
    before = executions(server, "slow_too")
    calls = Calls(server)
    call = calls.send("steps", MS=[SLOW])
    time.sleep(BEGINS_S)
    other = calls.send("slow", MS=[1])
    assert wait_until(lambda: waiting(server, "slow") == 1)  # so the first step runs

    call.cancel()
    calls.wait()  # the other one has run behind the first step

    assert other is not None
    assert executions(server, "slow_too") == before
