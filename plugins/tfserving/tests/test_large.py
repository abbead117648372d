"""gRPC: requests with many parts are read, within limits of parts and memory, outside of the event loop."""

import asyncio
import threading

import grpc
import numpy as np
import pytest
from frontend_tfserving.rpc import messages, reading, service
from frontend_tfserving.rpc.tensors import proto_of, tensor_of

import core
from core import dtypes
from core.errors import CoreError, MemoryExhausted
from core.tensor import Tensor
from frontends.grpc.call import GrpcCall

from .protos import examples, features, spec, tensor

FEATURES = [f"f{number}" for number in range(20)]
PREDICTION = "/tensorflow.serving.PredictionService/"


def summed(**inputs):
    return {"outputs": sum(inputs.values())}


def sizes(x):
    return {"sizes": np.array([len(each) for each in x.tolist()], np.int32)}


def same(x):
    return {"y": x}


@pytest.fixture(scope="module")
def channel():
    with core.Server() as server:
        inputs = {name: ("FP32", [1]) for name in FEATURES}
        rows = {"batching": True, "max_batch_size": 1024}
        server.bind("wide", summed, inputs=inputs, outputs={"outputs": ("FP32", [1])}, **rows)
        texts = {"inputs": {"x": ("BYTES", [-1])}, "outputs": {"sizes": ("INT32", [-1])}}
        server.bind("texts", sizes, **texts)
        server.bind("numbers", same, inputs={"x": ("FP32", [-1])}, outputs={"y": ("FP32", [-1])})
        port = server.serve(grpc_port=0)["grpc"]
        largest = [("grpc.max_receive_message_length", -1)]
        with grpc.insecure_channel(f"127.0.0.1:{port}", options=largest) as found:
            yield found


def predicted(channel, model, **inputs):
    request = messages.PredictRequest(model_spec=spec(model))
    for name, proto in inputs.items():
        request.inputs[name].CopyFrom(proto)
    send = channel.unary_unary(f"{PREDICTION}Predict")
    return messages.PredictResponse.FromString(send(request.SerializeToString(), timeout=60))


def many_examples():
    values = [
        features(**{name: [float(row + column)] for column, name in enumerate(FEATURES)})
        for row in range(2000)
    ]
    return messages.RegressionRequest(model_spec=spec("wide"), input=examples(*values))


def test_two_thousand_examples_of_twenty_features_are_answered(channel):
    send = channel.unary_unary(f"{PREDICTION}Regress")

    answer = send(many_examples().SerializeToString(), timeout=60)

    found = messages.RegressionResponse.FromString(answer).result.regressions
    assert [each.value for each in found] == [20.0 * row + 190 for row in range(2000)]


def test_many_texts_are_answered(channel):
    texts = [b"a" * (number % 5) for number in range(150_000)]

    found = predicted(channel, "texts", x=tensor(dtypes.BYTES, [150_000], string_val=texts))

    assert list(found.outputs["sizes"].int_val) == [number % 5 for number in range(150_000)]


def test_numbers_one_by_one_are_answered(channel):
    numbers = np.arange(150_000, dtype=np.float32)

    found = predicted(channel, "numbers", x=tensor(dtypes.FP32, [150_000], float_val=numbers))

    np.testing.assert_array_equal(found.outputs["y"].float_val, numbers)


# Limits ---------------------------------------------------------------------------


class Account:
    """The source of a call, which holds at most so many bytes."""

    def __init__(self, most):
        self.most, self.held = most, 0

    def hold(self, size, what):
        assert what == "the parts of a request"
        if self.held + size > self.most:
            raise MemoryExhausted(what)
        self.held += size


def read(account):
    data = many_examples().SerializeToString()
    call = GrpcCall((), source=account)
    return asyncio.run(reading.read(messages.RegressionRequest, data, call))


def test_parts_beyond_the_free_ones_are_held_in_the_account():
    account = Account(2**30)

    assert read(account) == many_examples()

    parts = 2000 * (
        2 + 20 * 4
    )  # the example and its features; entry, name, feature and list of each
    assert account.held >= (parts - reading.FREE_PARTS) * reading.BYTES_PER_PART
    assert account.held <= parts * reading.BYTES_PER_PART


def test_without_memory_for_its_parts_a_request_is_refused():
    with pytest.raises(MemoryExhausted):
        read(Account(reading.BYTES_PER_PART * 1000))


def test_more_parts_than_the_limit_are_refused(monkeypatch):
    monkeypatch.setattr(reading, "MOST_PARTS", 120_000)

    with pytest.raises(CoreError, match="more than 120000 parts; send it in parts"):
        read(Account(2**30))


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05abc", b"\x08" * 300_001])
def test_bytes_that_are_no_message_are_refused(data):
    with pytest.raises(CoreError, match=f"of {len(data)} bytes is no tensorflow.serving.Regress"):
        asyncio.run(reading.read(messages.RegressionRequest, data, GrpcCall()))


# Threads --------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "away"), [(10, False), (150_000, True)])
def test_large_tensors_are_read_and_written_outside_of_the_event_loop(
    channel, monkeypatch, count, away
):
    threads = []

    def noting(function):
        def noted(*args):
            threads.append(threading.current_thread().name)
            return function(*args)

        return noted

    monkeypatch.setattr(service, "tensor_of", noting(tensor_of))
    monkeypatch.setattr(service, "proto_of", noting(proto_of))

    predicted(channel, "numbers", x=tensor(dtypes.FP32, [count], float_val=range(count)))

    assert [name.startswith("http") for name in threads] == [away, away]


def test_packed_numbers_are_the_bytes_of_the_tensor():
    numbers = np.arange(6, dtype=np.float32)

    proto = proto_of(Tensor("y", dtypes.FP32, (2, 3), array=numbers.reshape(2, 3)))

    assert list(proto.float_val) == [numbers.tobytes()]
    assert tensor_of("y", proto).array.base is not None  # a view of the bytes, no copy
