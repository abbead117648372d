"""The response cache under `preserve_ordering`: answers that need no execution wait for earlier requests."""

import random
import threading

import numpy as np
import pytest
from conformance.model import Model
from conformance.platform_port import skip_original
from conformance.protocol import grpc_input, wait_until
from conformance.streams import Stream

SLOW, SLOW_TOO = 1800, 1400  # the recorder sleeps for what is above 1000, in milliseconds


def recorder(name, batching, instances=2):
    return Model(
        name,
        "batch_recorder",
        config=f"""
backend: "python"
max_batch_size: 8
input [ {{ name: "INPUT0" data_type: TYPE_INT32 dims: [ 1 ] }} ]
output [
  {{ name: "VALUE" data_type: TYPE_INT32 dims: [ 1 ] }},
  {{ name: "ROWS" data_type: TYPE_INT32 dims: [ 1 ] }},
  {{ name: "REQUESTS" data_type: TYPE_INT32 dims: [ 1 ] }},
  {{ name: "EXECUTION" data_type: TYPE_INT32 dims: [ 1 ] }}
]
{batching}
response_cache {{ enable: true }}
instance_group [ {{ count: {instances} kind: KIND_CPU }} ]
parameters: {{ key: "delay_ms" value: {{ string_value: "0" }} }}
""",
    )


ORDERED = recorder("ordered", "dynamic_batching { preserve_ordering: true }")
ONE = recorder("one", "dynamic_batching { preserve_ordering: true }", instances=1)


@pytest.fixture(scope="module")
def server(launch, launcher):
    skip_original(launcher, "hits overtake misses that wait in the queue, until 2.75")
    return launch(
        [ORDERED, ONE],
        "--cache-config=local,size=4194304",
        "--model-control-mode=explicit",
        "--load-model=*",
    )


def value(number):
    return [grpc_input("INPUT0", np.array([[number]], np.int32))]


def known(server, model, *numbers):
    """Ask once for each number, so that the cache has its answer."""
    for number in numbers:
        server.grpc_client().infer(model, value(number))


def hits(server, model):
    return server.stats(model)["inference_stats"]["cache_hit"]["count"]


def pending(server, model):
    return server.metric("nv_inference_pending_request_count", model=model, version="1")


def test_an_answer_of_the_cache_waits_for_a_request_that_runs(server):
    known(server, "ordered", 1)
    before = hits(server, "ordered")
    with Stream(server) as stream:
        for number in (SLOW, 1):
            stream.send("ordered", value(number), request_id=str(number))

        ids = [each.get_response().id for each in stream.take(2)]

    assert ids == [str(SLOW), "1"]
    assert hits(server, "ordered") == before + 1


def test_an_answer_of_the_cache_waits_for_a_request_in_the_queue(server):
    """The second request has no instance yet when the answer of the third one is found."""
    known(server, "one", 2)
    before = hits(server, "one")
    with Stream(server) as stream:
        for number in (SLOW, 3, 2, 4):
            stream.send("one", value(number), request_id=str(number))
        assert wait_until(lambda: hits(server, "one") == before + 1)

        ids = [each.get_response().id for each in stream.take(4)]

    assert ids == [str(SLOW), "3", "2", "4"]


def test_hits_and_misses_of_a_long_stream_keep_their_order(server):
    chance = random.Random(5)
    numbers = [chance.randrange(10, 60) for _ in range(400)]
    with Stream(server) as stream:
        for place, number in enumerate(numbers):
            stream.send("ordered", value(number), request_id=str(place))

        answers = stream.take(len(numbers))

    assert [each.get_response().id for each in answers] == [str(i) for i in range(len(numbers))]
    assert [int(each.as_numpy("VALUE")[0, 0]) for each in answers] == numbers


def test_a_cancelled_request_does_not_hold_back_the_answers_behind_it(server):
    known(server, "one", 5)
    ended, answered, errors = threading.Event(), threading.Event(), []
    client = server.grpc_client()

    def answer(result, error):
        errors.append(error)
        answered.set()

    before = hits(server, "one")
    running = client.async_infer("one", value(SLOW_TOO), lambda result, error: ended.set())
    waiting = client.async_infer("one", value(6), lambda result, error: None)
    behind = client.async_infer("one", value(5), answer)
    assert wait_until(lambda: hits(server, "one") == before + 1)  # so the one before it is there
    waiting.cancel()

    assert answered.wait(30) and ended.wait(30)
    assert errors == [None]
    assert running is not None and behind is not None
    assert server.alive()


def test_clients_that_leave_while_hits_wait_in_order_leave_nothing_behind(server):
    known(server, "one", 7)
    for _ in range(40):
        stream = Stream(server)
        for number in (8, 7, 1050, 7, 9, 7):
            stream.send("one", value(number))
        stream.client.stop_stream(cancel_requests=True)

    assert wait_until(lambda: pending(server, "one") == 0, timeout=60)
    assert int(server.grpc_client().infer("one", value(7)).as_numpy("VALUE")[0, 0]) == 7


def test_an_unload_answers_the_hits_that_wait_in_order(server):
    known(server, "ordered", 61)
    before = hits(server, "ordered")
    with Stream(server) as stream:
        for place, number in enumerate((1600, 61, 62, 61)):
            stream.send("ordered", value(number), request_id=str(place))
        assert wait_until(lambda: hits(server, "ordered") > before)
        server.post("/v2/repository/models/ordered/unload", {})

        answers = [stream.next() for _ in range(4)]
        assert server.post("/v2/repository/models/ordered/load", {}).status == 200

    served = [result.get_response().id for result, error in answers if error is None]
    assert served[:1] == ["0"]
    assert served == sorted(served)
    assert server.alive()
