"""A client of KEDA's protocol, and the server that it scales, over real gRPC."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest
from conformance.launcher import Launcher
from conformance.model import Model
from core_keda import messages

import core
from frontends.shared.access.tokens import line_of

SERVICE = "/externalscaler.ExternalScaler/"
INFER = "/inference.GRPCInferenceService/ModelInfer"

WAITS = """
import time
from pathlib import Path

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    \"\"\"Answers when a file `open` lies beside it.\"\"\"

    def execute(self, requests):
        while not Path(__file__).with_name("open").exists():
            time.sleep(0.02)
        tensors = [pb_utils.get_input_tensor_by_name(each, "x") for each in requests]
        found = [pb_utils.Tensor("y", each.as_numpy()) for each in tensors]
        return [pb_utils.InferenceResponse([each]) for each in found]
"""
WAITS_CONFIG = """
backend: "python"
input [{ name: "x" data_type: TYPE_INT32 dims: [1] }]
output [{ name: "y" data_type: TYPE_INT32 dims: [1] }]
"""
BODY = {"inputs": [{"name": "x", "datatype": "INT32", "shape": [1], "data": [1]}]}
SENT = (
    16  # over connections of their own: both of two workers get some, but for once in 30,000 runs
)


class Keda:
    """The calls of KEDA's operator for one trigger."""

    def __init__(self, channel, **metadata):
        self._channel = channel
        self.reference = messages.ScaledObjectRef(
            name="chat", namespace="models", scalerMetadata=metadata
        )

    def _call(self, name, request, response):
        method = self._channel.unary_unary(
            SERVICE + name, lambda message: message.SerializeToString(), response.FromString
        )
        return method(request, timeout=20)

    def is_active(self):
        return self._call("IsActive", self.reference, messages.IsActiveResponse).result

    def spec(self):
        answer = self._call("GetMetricSpec", self.reference, messages.GetMetricSpecResponse)
        (found,) = answer.metricSpecs
        return found.metricName, found.targetSizeFloat, found.targetSize

    def value(self):
        request = messages.GetMetricsRequest(
            scaledObjectRef=self.reference, metricName=self.spec()[0]
        )
        (found,) = self._call("GetMetrics", request, messages.GetMetricsResponse).metricValues
        assert found.metricName == request.metricName
        assert found.metricValue == -(-found.metricValueFloat // 1)
        return found.metricValueFloat

    def stream(self):
        method = self._channel.unary_stream(
            SERVICE + "StreamIsActive",
            lambda message: message.SerializeToString(),
            lambda data: messages.IsActiveResponse.FromString(data).result,
        )
        return method(self.reference, timeout=20)


class Gated:
    """A model whose requests wait until the gate is open."""

    def __init__(self):
        self.gate = threading.Event()

    def __call__(self, x):
        assert self.gate.wait(20)
        return {"y": x}


@pytest.fixture
def gated():
    return Gated()


@pytest.fixture
def server(gated):
    with core.Server() as found:
        for name in ("slow", "idle"):
            found.bind(name, gated, inputs={"x": ("FP32", [1])}, outputs={"y": ("FP32", [1])})
        yield found
        gated.gate.set()


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(f"127.0.0.1:{server.serve(grpc_port=0)['grpc']}") as found:
        yield found


def send(server, count):
    """Send requests to the model `slow` that wait; the first one runs."""
    x = np.zeros(1, np.float32)
    threads = ThreadPoolExecutor(count)
    replies = [threads.submit(server.infer, "slow", {"x": x}) for _ in range(count)]
    threads.shutdown(wait=False)
    return replies


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_idle_server_is_not_active_and_has_no_wait(channel):
    keda = Keda(channel)

    assert not keda.is_active()
    assert keda.value() == 0
    assert keda.spec() == ("core-wait_seconds", 0.1, 1)


def test_the_waiting_requests_of_a_model_are_counted(server, channel, gated):
    replies = send(server, 4)
    keda = Keda(channel, model="slow", signal="pending", target="2.5")

    until(lambda: keda.value() == 3)

    assert keda.spec() == ("core-pending-slow", 2.5, 3)
    assert keda.is_active()
    assert Keda(channel, model="slow", signal="in_flight", target="1").value() == 4
    assert Keda(channel, model="idle", signal="pending", target="1").value() == 0
    assert Keda(channel, signal="pending", target="1").value() == 3
    gated.gate.set()
    for reply in replies:
        reply.result(20)


def test_the_estimated_wait_grows_with_the_queue(server, channel, gated):
    gated.gate.set()
    (first,) = send(server, 1)
    first.result(20)  # its time of execution is what the estimate is made of
    gated.gate.clear()
    send(server, 1)
    keda = Keda(channel, model="slow", signal="in_flight", target="1")
    until(lambda: keda.value() == 1)
    wait = Keda(channel, model="slow")
    before = wait.value()
    send(server, 10)
    until(lambda: wait.value() > before)
    few = wait.value()
    send(server, 40)
    until(lambda: wait.value() > few)


def test_the_stream_sends_each_change(server, channel, gated):
    stream = Keda(channel, signal="pending", target="1").stream()

    assert next(stream) is False
    replies = send(server, 2)
    assert next(stream) is True
    gated.gate.set()
    for reply in replies:
        reply.result(20)
    assert next(stream) is False
    stream.cancel()


def test_activation_is_the_value_above_which_the_trigger_is_active(server, channel):
    send(server, 2)
    metadata = {"model": "slow", "signal": "in_flight", "target": "1"}
    until(lambda: Keda(channel, **metadata).value() == 2)

    assert Keda(channel, **metadata, activation="1").is_active()
    assert not Keda(channel, **metadata, activation="2").is_active()


@pytest.mark.parametrize("name", ["is_active", "spec", "value"])
def test_a_wrong_trigger_is_refused_with_the_name_of_its_object(channel, name):
    with pytest.raises(grpc.RpcError) as error:
        getattr(Keda(channel, signal="wait"), name)()

    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "ScaledObject 'chat' has signal 'wait'" in error.value.details()


def test_a_model_that_the_server_does_not_know_is_not_found(channel):
    with pytest.raises(grpc.RpcError) as error:
        Keda(channel, model="absent").value()

    assert error.value.code() is grpc.StatusCode.NOT_FOUND
    assert "the server knows no model 'absent'" in error.value.details()


def test_a_stream_without_a_request_is_refused(channel):
    method = channel.stream_stream(SERVICE + "StreamIsActive")

    with pytest.raises(grpc.RpcError) as error:
        next(method(iter(()), timeout=20))

    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_the_option_turns_it_off(gated):
    with core.Server(allow_keda=False) as server:
        address = f"127.0.0.1:{server.serve(grpc_port=0)['grpc']}"
        with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as error:
            Keda(channel).is_active()

    assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED


@contextlib.contextmanager
def guarded(folder, *categories):
    """Yield a channel without a token to a server that wants one, but for calls of these categories."""
    tokens = folder / "tokens"
    tokens.write_text(line_of("client", ["infer"], "secret"))
    with core.Server(auth_tokens=str(tokens), auth_open=list(categories)) as server:
        port = server.serve(grpc_port=0)["grpc"]
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel


def test_with_tokens_keda_reads_what_is_open_to_all(tmp_path):
    with guarded(tmp_path, "health", "metrics") as channel:
        keda = Keda(channel)

        assert (keda.value(), keda.is_active(), next(keda.stream())) == (0, False, False)
        with pytest.raises(grpc.RpcError) as error:
            channel.unary_unary(INFER)(b"", timeout=20)

    assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("name", ["is_active", "spec", "value"])
def test_with_tokens_keda_is_refused_where_nothing_else_is_open(tmp_path, name):
    with guarded(tmp_path, "health") as channel, pytest.raises(grpc.RpcError) as error:
        getattr(Keda(channel), name)()

    assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.fixture
def two_workers(pytestconfig):
    """A server of two workers with the model `waits`."""
    pytest.importorskip("core_workers")
    pytest.importorskip("backend_python")
    launcher = Launcher(pytestconfig)
    launcher.kind = "core"
    try:
        model = Model("waits", "plain", config=WAITS_CONFIG, files={"1/model.py": WAITS})
        yield launcher.start([model], "--workers=2")
    finally:
        launcher.stop_all(wait=True)


def in_flight(address):
    """Return the value over a connection of its own, which may reach any worker."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, options=options) as channel:
        return Keda(channel, model="waits", signal="in_flight", target="1").value()


def test_an_answer_covers_all_workers(two_workers):
    with ThreadPoolExecutor(SENT) as threads:
        replies = [threads.submit(two_workers.infer, "waits", BODY) for _ in range(SENT)]
        try:
            # Each worker repeats its own look for a while: both must have seen all requests.
            until(lambda: {in_flight(two_workers.grpc_address) for _ in range(8)} == {SENT})
        finally:
            (two_workers.repository / "waits" / "1" / "open").touch()

    assert {each.result().status for each in replies} == {200}
