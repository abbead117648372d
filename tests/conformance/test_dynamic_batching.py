"""The dynamic batcher: sizes, delay, order."""

import threading
import time

import numpy as np
import pytest
from conformance.model import Model
from conformance.protocol import grpc_input, http_input
from conformance.streams import Stream


def recorder(name, batching, delay=0, batch=8, extra=""):
    return Model(
        name,
        "batch_recorder",
        config=f'''
backend: "python"
max_batch_size: {batch}
input [ {{ name: "INPUT0" data_type: TYPE_INT32 dims: [ 1 ] }} ]
output [
  {{ name: "VALUE" data_type: TYPE_INT32 dims: [ 1 ] }},
  {{ name: "ROWS" data_type: TYPE_INT32 dims: [ 1 ] }},
  {{ name: "REQUESTS" data_type: TYPE_INT32 dims: [ 1 ] }},
  {{ name: "EXECUTION" data_type: TYPE_INT32 dims: [ 1 ] }}
]
{batching}
parameters: {{ key: "delay_ms" value: {{ string_value: "{delay}" }} }}
{extra}
''',
    )


MODELS = [
    recorder("plain_batching", "dynamic_batching { }"),
    recorder("no_batching", ""),
    recorder(
        "preferred",
        "dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 2000000 }",
    ),
    recorder("delayed", "dynamic_batching { max_queue_delay_microseconds: 400000 }"),
    recorder(
        "ordered",
        "dynamic_batching { preserve_ordering: true }",
        extra="instance_group [ { count: 2 kind: KIND_CPU } ]",
    ),
    Model(
        "ragged_shapes",
        "identity",
        config="""
backend: "python"
max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
dynamic_batching { max_queue_delay_microseconds: 300000 }
""",
    ),
]


@pytest.fixture(scope="module")
def server(launch):
    return launch(MODELS)


def together(server, model, batches, pause=0.0):
    """Send requests at a time; gives each one's (values, rows, requests, execution)."""
    found = [None] * len(batches)

    def run(index, values):
        result = server.http_client().infer(
            model, [http_input("INPUT0", np.array(values, np.int32).reshape(-1, 1))]
        )
        found[index] = tuple(
            result.as_numpy(name).ravel().tolist()
            for name in ("VALUE", "ROWS", "REQUESTS", "EXECUTION")
        )

    threads = [threading.Thread(target=run, args=item) for item in enumerate(batches)]
    for thread in threads:
        thread.start()
        time.sleep(pause)
    for thread in threads:
        thread.join(60)
    return found


def behind_a_slow_one(server, model, batches, milliseconds=600):
    """Occupy the model's instance, then send requests that must queue."""
    slow = threading.Thread(target=together, args=(server, model, [[1000 + milliseconds]]))
    slow.start()
    time.sleep(0.25)
    found = together(server, model, batches, pause=0.01)
    slow.join(60)
    return found


def test_requests_that_wait_are_run_as_one_batch(server):
    found = behind_a_slow_one(server, "plain_batching", [[number] for number in range(6)])
    assert [values for values, *_ in found] == [[number] for number in range(6)]
    assert {rows[0] for _, rows, *_ in found} == {6}
    assert {count[0] for _, _, count, _ in found} == {6}
    assert len({execution[0] for *_, execution in found}) == 1


def test_batch_never_exceeds_the_maximum(server):
    found = behind_a_slow_one(server, "plain_batching", [[number] for number in range(13)])
    sizes = {execution[0]: rows[0] for _, rows, _, execution in found}
    assert max(sizes.values()) <= 8
    assert sum(sizes.values()) == 13
    assert sorted(sizes.values()) == [5, 8]


def test_requests_of_several_rows_count_with_all_of_them(server):
    found = behind_a_slow_one(server, "plain_batching", [[1, 2, 3], [4, 5], [6, 7, 8]])
    assert {rows[0] for _, rows, *_ in found} == {8}
    assert {count[0] for _, _, count, _ in found} == {3}
    assert [values for values, *_ in found] == [[1, 2, 3], [4, 5], [6, 7, 8]]


def test_request_is_never_split(server):
    found = behind_a_slow_one(server, "plain_batching", [[1] * 5, [2] * 5])
    assert [rows[0] for _, rows, *_ in found] == [5, 5]
    assert found[0][3] != found[1][3]


def test_without_dynamic_batching_each_request_runs_alone(server):
    found = behind_a_slow_one(server, "no_batching", [[number] for number in range(4)])
    assert {rows[0] for _, rows, *_ in found} == {1}
    assert len({execution[0] for *_, execution in found}) == 4


def test_single_request_does_not_wait_without_a_delay(server):
    start = time.monotonic()
    together(server, "plain_batching", [[1]])
    assert time.monotonic() - start < 1


def test_preferred_size_runs_without_waiting_for_the_delay(server):
    together(server, "preferred", [[1]] * 4)
    start = time.monotonic()
    found = together(server, "preferred", [[number] for number in range(4)])
    assert time.monotonic() - start < 1.5
    assert {rows[0] for _, rows, *_ in found} == {4}


def test_less_than_a_preferred_size_waits_for_the_delay(server):
    start = time.monotonic()
    found = together(server, "preferred", [[1], [2]])
    assert time.monotonic() - start >= 1.9
    assert {rows[0] for _, rows, *_ in found} == {2}


def test_delay_gathers_requests_that_come_in_time(server):
    found = together(server, "delayed", [[1], [2], [3]], pause=0.05)
    assert {rows[0] for _, rows, *_ in found} == {3}


def test_full_batch_does_not_wait_for_the_delay(server):
    together(server, "delayed", [[1] * 8])
    start = time.monotonic()
    together(server, "delayed", [[1] * 8])
    assert time.monotonic() - start < 0.35


def test_preserved_order_answers_in_the_order_of_arrival(server):
    """The first request is slow, the second not; a second instance is free."""
    with Stream(server) as stream:
        for value in (1400, 1, 2):
            stream.send(
                "ordered",
                [grpc_input("INPUT0", np.array([[value]], np.int32))],
                request_id=str(value),
            )
            time.sleep(0.1)
        assert [result.get_response().id for result in stream.take(3)] == ["1400", "1", "2"]


def test_different_shapes_are_not_batched_together_but_all_answered(server):
    found = {}

    def run(length):
        sample = np.full((1, length), length, np.float32)
        found[length] = (
            server.http_client()
            .infer("ragged_shapes", [http_input("INPUT0", sample)])
            .as_numpy("OUTPUT0")
        )

    threads = [threading.Thread(target=run, args=(length,)) for length in (1, 2, 3, 2, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert {length: array.shape for length, array in found.items()} == {
        1: (1, 1),
        2: (1, 2),
        3: (1, 3),
    }


def test_statistics_tell_the_batch_sizes(server):
    def counts():
        return {
            entry["batch_size"]: entry["compute_infer"]["count"]
            for entry in server.stats("plain_batching")["batch_stats"]
        }

    before = counts()
    behind_a_slow_one(server, "plain_batching", [[number] for number in range(6)])
    after = counts()
    assert after[6] - before.get(6, 0) == 1
    assert after[1] - before.get(1, 0) == 1


def test_execution_count_is_smaller_than_inference_count(server):
    before = server.stats("plain_batching")
    behind_a_slow_one(server, "plain_batching", [[number] for number in range(5)])
    after = server.stats("plain_batching")
    assert after["inference_count"] - before["inference_count"] == 6
    assert after["execution_count"] - before["execution_count"] == 2


def test_many_concurrent_requests_get_their_own_answers(server):
    found = together(server, "plain_batching", [[number] for number in range(60)])
    assert [values for values, *_ in found] == [[number] for number in range(60)]
