"""Sequence batching: direct and oldest, control tensors, errors."""

import threading
import time

import numpy as np
import pytest
from conformance.model import Model
from conformance.protocol import grpc_input, http_input, refused, tensor
from conformance.streams import Stream
from tritonclient.utils import InferenceServerException


def controls(start="int32_false_true: [ 0, 1 ]", corrid="TYPE_UINT64", ready=True):
    entries = [
        f'{{ name: "START" control [ {{ kind: CONTROL_SEQUENCE_START {start} }} ] }}',
        f'{{ name: "END" control [ {{ kind: CONTROL_SEQUENCE_END {start} }} ] }}',
    ]
    if corrid:
        entries.append(
            '{ name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID '
            f"data_type: {corrid} }} ] }}"
        )
    if ready:
        entries.append(
            f'{{ name: "READY" control [ {{ kind: CONTROL_SEQUENCE_READY {start} }} ] }}'
        )
    return "control_input [ " + ", ".join(entries) + " ]"


def sequence(name, strategy, batch=4, idle=60_000_000, count=1, **kwargs):
    return Model(
        name,
        "sequence_direct",
        config=f"""
backend: "python"
max_batch_size: {batch}
sequence_batching {{
  max_sequence_idle_microseconds: {idle}
  {strategy}
  {controls(**kwargs)}
}}
input [ {{ name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] }} ]
output [
  {{ name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] }},
  {{ name: "TRACE" data_type: TYPE_STRING dims: [ 1 ] }}
]
instance_group [ {{ count: {count} kind: KIND_CPU }} ]
""",
    )


MODELS = [
    "sequence_direct",
    "countdown",
    sequence("oldest", "oldest { max_candidate_sequences: 4 }", ready=False),
    sequence("fp32_controls", "direct { }", start="fp32_false_true: [ 0, 1 ]"),
    sequence("bool_controls", "direct { }", start="bool_false_true: [ false, true ]"),
    sequence(
        "text_corrid", "oldest { max_candidate_sequences: 4 }", batch=0, corrid=None, ready=False
    ),
    sequence("int32_corrid", "direct { }", corrid="TYPE_INT32"),
    sequence("short_idle", "direct { }", batch=1, idle=1_500_000),
    sequence("unbatched", "direct { }", batch=0),
    sequence("two_instances", "direct { }", batch=1, count=2),
]


@pytest.fixture(scope="module")
def server(launch):
    return launch(MODELS)


_numbers = iter(range(1000, 10**6))


@pytest.fixture
def number():
    """A correlation ID that no test had before."""
    return next(_numbers)


class Sequence:
    """One sequence of a client, sent request by request."""

    def __init__(self, server, model, number, shape=(1, 1)):
        self.client = server.http_client()
        self.model = model
        self.number = number
        self.shape = shape

    def send(self, value, start=False, end=False):
        result = self.client.infer(
            self.model,
            [http_input("INPUT", np.full(self.shape, value, np.int32))],
            sequence_id=self.number,
            sequence_start=start,
            sequence_end=end,
        )
        self.trace = result.as_numpy("TRACE").ravel()[0].decode()
        return int(result.as_numpy("OUTPUT").ravel()[0])

    def run(self, values):
        last = len(values) - 1
        return [self.send(value, index == 0, index == last) for index, value in enumerate(values)]


ACCUMULATORS = ["sequence_direct", "oldest", "fp32_controls", "bool_controls", "int32_corrid"]


@pytest.mark.parametrize("model", ACCUMULATORS)
def test_requests_of_a_sequence_reach_the_same_state(server, model, number):
    assert Sequence(server, model, number).run([1, 2, 3, 4]) == [1, 3, 6, 10]


@pytest.mark.parametrize("model", ACCUMULATORS)
def test_control_tensors_tell_start_end_and_correlation_id(server, model, number):
    sequence = Sequence(server, model, number)
    traces = []
    for value, start, end in ((1, True, False), (2, False, False), (3, False, True)):
        sequence.send(value, start, end)
        traces.append(sequence.trace)
    assert traces == [f"{number}|1|0|1", f"{number}|0|0|1", f"{number}|0|1|1"]


def test_correlation_id_may_be_a_string(server):
    sequence = Sequence(server, "text_corrid", "my sequence", shape=(1,))
    assert sequence.run([5, 6]) == [5, 11]
    assert sequence.trace == "my sequence|0|1|1"


def test_start_and_end_may_be_on_the_same_request(server, number):
    sequence = Sequence(server, "sequence_direct", number)
    assert sequence.send(7, True, True) == 7
    assert sequence.trace == f"{number}|1|1|1"


def test_start_again_begins_anew(server, number):
    sequence = Sequence(server, "sequence_direct", number)
    sequence.send(5, start=True)
    assert sequence.send(6) == 11
    assert sequence.send(7, start=True) == 7
    assert sequence.send(1, end=True) == 8


def test_correlation_id_may_be_used_again_after_the_end(server, number):
    sequence = Sequence(server, "sequence_direct", number)
    assert sequence.run([1, 2]) == [1, 3]
    assert sequence.run([10, 20]) == [10, 30]


def test_sequences_without_batching_work(server, number):
    assert Sequence(server, "unbatched", number, shape=(1,)).run([1, 2, 3]) == [1, 3, 6]


@pytest.mark.parametrize("model", ["sequence_direct", "oldest"])
def test_interleaved_sequences_do_not_mix(server, model):
    sequences = [Sequence(server, model, next(_numbers)) for _ in range(4)]
    for sequence in sequences:
        sequence.send(sequence.number, start=True)
    for step in range(1, 6):
        for sequence in sequences:
            assert sequence.send(step) == sequence.number + step * (step + 1) // 2
    for sequence in sequences:
        sequence.send(0, end=True)


@pytest.mark.parametrize("model", ["sequence_direct", "oldest"])
def test_more_sequences_than_slots_all_end_rightly(server, model):
    found = {}

    def run(sequence):
        found[sequence.number] = sequence.run([1, 2, 3, 4, 5])

    sequences = [Sequence(server, model, next(_numbers)) for _ in range(10)]
    threads = [threading.Thread(target=run, args=(sequence,)) for sequence in sequences]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {sequence.number: [1, 3, 6, 10, 15] for sequence in sequences}


def test_sequence_waits_for_a_free_slot(server):
    """One slot of short_idle: the second sequence starts after the first ended."""
    first = Sequence(server, "short_idle", next(_numbers))
    second = Sequence(server, "short_idle", next(_numbers))
    first.send(1, start=True)
    times = {}

    def run():
        second.run([2])
        times["second"] = time.monotonic()

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.2)
    assert "second" not in times
    times["first"] = time.monotonic()
    first.send(1, end=True)
    thread.join(20)
    assert times["second"] > times["first"]


def test_idle_sequence_gives_up_its_slot(server):
    first = Sequence(server, "short_idle", next(_numbers))
    first.send(1, start=True)
    start = time.monotonic()
    assert Sequence(server, "short_idle", next(_numbers)).send(2, True, True) == 2
    assert 1 < time.monotonic() - start < 12
    with pytest.raises(InferenceServerException):
        first.send(1)


def test_sequences_are_distributed_over_instances(server):
    """Two instances with one slot each hold two sequences at a time."""
    first = Sequence(server, "two_instances", next(_numbers))
    second = Sequence(server, "two_instances", next(_numbers))
    first.send(1, start=True)
    assert second.run([5, 6]) == [5, 11]
    assert first.send(1, end=True) == 2


@pytest.mark.parametrize("model", ["sequence_direct", "oldest"])
def test_first_request_must_say_start(server, model, number):
    with pytest.raises(InferenceServerException) as error:
        Sequence(server, model, number).send(1)
    assert error.value.status() == "400"
    assert "START" in error.value.message()


def test_grpc_first_request_must_say_start(server, number):
    with pytest.raises(InferenceServerException) as error:
        server.grpc_client().infer(
            "sequence_direct", [grpc_input("INPUT", np.array([[1]], np.int32))], sequence_id=number
        )
    assert error.value.status() == "StatusCode.INVALID_ARGUMENT"


def test_correlation_id_is_required(server):
    text = refused(
        server.infer(
            "sequence_direct",
            {
                "parameters": {"sequence_start": True},
                "inputs": [tensor("INPUT", [1], [1, 1], "INT32")],
            },
        ),
        400,
    )
    assert "correlation ID" in text


def test_batch_of_a_sequence_request_must_be_one(server, number):
    refused(
        server.infer(
            "sequence_direct",
            {
                "parameters": {"sequence_id": number, "sequence_start": True},
                "inputs": [tensor("INPUT", [1, 2], [2, 1], "INT32")],
            },
        ),
        400,
    )


def test_control_tensors_are_not_inputs_of_the_metadata(server):
    metadata = server.get("/v2/models/sequence_direct").json
    assert [entry["name"] for entry in metadata["inputs"]] == ["INPUT"]


def test_control_tensor_cannot_be_sent(server, number):
    refused(
        server.infer(
            "sequence_direct",
            {
                "parameters": {"sequence_id": number, "sequence_start": True},
                "inputs": [
                    tensor("INPUT", [1], [1, 1], "INT32"),
                    tensor("START", [1], [1, 1], "INT32"),
                ],
            },
        ),
        400,
    )


def test_sequence_over_a_grpc_stream(server, number):
    with Stream(server) as stream:
        for index, value in enumerate([1, 2, 3]):
            stream.send(
                "sequence_direct",
                [grpc_input("INPUT", np.array([[value]], np.int32))],
                sequence_id=number,
                sequence_start=index == 0,
                sequence_end=index == 2,
                request_id=str(index),
            )
        found = stream.take(3)
    assert [int(result.as_numpy("OUTPUT")[0][0]) for result in found] == [1, 3, 6]


def test_many_sequences_over_one_grpc_stream(server):
    numbers = [next(_numbers) for _ in range(6)]
    with Stream(server) as stream:
        for step in range(5):
            for number in numbers:
                stream.send(
                    "oldest",
                    [grpc_input("INPUT", np.array([[number]], np.int32))],
                    sequence_id=number,
                    sequence_start=step == 0,
                    sequence_end=step == 4,
                    request_id=f"{number} {step}",
                )
        found = {
            result.get_response().id: int(result.as_numpy("OUTPUT")[0][0])
            for result in stream.take(30)
        }
    assert found == {
        f"{number} {step}": number * (step + 1) for number in numbers for step in range(5)
    }


def test_string_correlation_id_over_grpc(server):
    client = server.grpc_client()
    for index, total in enumerate([4, 8]):
        result = client.infer(
            "text_corrid",
            [grpc_input("INPUT", np.array([4], np.int32))],
            sequence_id="text of grpc",
            sequence_start=index == 0,
            sequence_end=index == 1,
        )
        assert result.as_numpy("OUTPUT")[0] == total


def test_iterative_sequence_executes_once_for_each_response(server):
    before = server.stats("countdown")["execution_count"]
    with Stream(server) as stream:
        stream.send("countdown", [grpc_input("IN", np.array([4], np.int32))])
        assert [int(result.as_numpy("OUT")[0]) for result in stream.take(4)] == [3, 2, 1, 0]
        assert stream.quiet()
    assert server.stats("countdown")["execution_count"] - before == 4
