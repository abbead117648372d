"""The response cache and its memory: it keeps responses, and no part of failed requests."""

import gc
import json
import threading
import time

import grpc
import pytest

from core.pipeline import cache

IO = """
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
KEPT = 'backend: "test" response_cache { enable: true } ' + IO
NARROW = KEPT + "dynamic_batching { default_queue_policy { max_queue_size: 1 } }"
SIZE = 100_000
PATIENCE_S = 30.0


@pytest.fixture
def served(serve):
    return serve({"kept": KEPT, "narrow": NARROW}, cache_config={"local": {"size": str(SIZE)}})


def fill(served):
    return served.call(lambda: (len(served.server.cache), served.server.cache.used))


def lookups():
    gc.collect()
    return sum(isinstance(each, cache._Lookup) for each in gc.get_objects())


def test_failed_requests_leave_no_cache_entry(served, document, message):
    """A cache that kept entries of what had failed grew until nothing else fitted."""
    assert served.infer(document(1.0), "kept").status == 200
    before, waiting = fill(served), lookups()

    for i in range(1, 30):
        assert served.infer(document(-float(i)), "kept").status == 500
        served.refused("ModelInfer", message(-float(i), model="kept"))

    assert before[0] == 1
    assert fill(served) == before
    assert lookups() == waiting


def test_refused_and_cancelled_requests_leave_no_cache_entry(served, message):
    before, waiting = fill(served), lookups()
    refused = threading.Semaphore(0)
    calls = [
        served.stub.ModelInfer.future(message(float(i), model="narrow"), timeout=60)
        for i in range(10)
    ]
    for call in calls:
        call.add_done_callback(lambda _: refused.release())
    for _ in range(8):  # one runs, and one is in the queue
        assert refused.acquire(timeout=60)

    for call in calls:
        call.cancel()
    served.backend.gate.set()
    served.stub.ModelInfer(message(99.0, model="kept"), timeout=60)

    # The two may have been answered before the server noticed the cancellation.
    assert {call.code() for call in calls} == {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
    }
    found = fill(served)
    assert 1 <= found[0] - before[0] <= 3
    assert found[1] - before[1] <= 3 * 1000
    end_s = time.monotonic() + PATIENCE_S
    while lookups() != waiting and time.monotonic() < end_s:  # the two may not have ended yet
        time.sleep(0.05)
    assert lookups() == waiting


def test_the_cache_never_holds_more_than_it_may(served, document):
    for i in range(300):
        assert served.infer(document(*[float(i)] * 50), "kept").status == 200

    count, used = fill(served)

    assert 0 < used <= SIZE
    assert count < 300


def test_a_response_larger_than_the_cache_is_sent_and_not_cached(served, document):
    before = fill(served)
    large = [1.0] * (SIZE // 4)

    answer = served.infer(document(*large), "kept")

    assert json.loads(answer.body)["outputs"][0]["shape"] == [len(large)]
    assert fill(served) == before
