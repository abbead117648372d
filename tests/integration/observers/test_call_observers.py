"""Observers see each call as it came and its answer as it leaves, on each path and with each engine."""

import json
import threading
import zlib

import grpc
import numpy as np
import pytest
from weaknesses.conftest import LANES, Served, document, message

from frontends.shared.call_observers import CallObservers

INFER = "/inference.GRPCInferenceService/ModelInfer"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
FIRST = 100_000  # elements of a body that is received in pieces


class Seen:
    """One observed call, with joined messages."""

    def __init__(self, call, over):
        self.call, self.over = call, over
        self.received, self.sent = [], []
        self.status = self.head = None

    def receive(self, message):
        self.received.append(joined(message))

    def send(self, message):
        self.sent.append(joined(message))

    def end(self, status, head):
        assert self.status is None
        self.status, self.head = status, head
        self.over.set()


def joined(message):
    return b"".join(message) if isinstance(message, list) else bytes(message)


class Observer:
    """Observes all calls; `wanted` may refuse some."""

    def __init__(self):
        self.calls = []
        self.over = threading.Event()
        self.wanted = lambda call: True

    def begin(self, call):
        if not self.wanted(call):
            return None
        self.calls.append(Seen(call, self.over))
        return self.calls[-1]

    def only(self):
        """The only call, when it has ended."""
        assert self.over.wait(20)
        (found,) = self.calls
        return found


@pytest.fixture(scope="module", params=LANES)
def served(request, tmp_path_factory):
    found = Served(tmp_path_factory.mktemp("observers"), request.param, {"workers": 1})
    found.lanes = request.param
    yield found
    found.close()


@pytest.fixture
def observer(served):
    found = Observer()
    observers = CallObservers.of(served.server)
    served.call(observers.add, found)
    yield found
    served.call(observers.remove, found)
    assert observers.begin is None


def test_a_request_and_its_answer_over_http(served, observer):
    answer = served.infer(document(1.0, id="mine"), headers={"X-Mine": "a b"})

    seen = observer.only()
    call = seen.call
    assert (call.protocol, call.category, call.model, call.version) == (
        "http",
        "inference",
        "echo",
        "",
    )
    assert (call.method, call.target, call.caller) == ("POST", "/v2/models/echo/infer", "")
    assert call.client.startswith("127.0.0.1:")
    assert call.head.startswith(b"POST /v2/models/echo/infer HTTP/1.1\r\n")
    assert b"\r\nX-Mine: a b\r\n" in call.head and call.head.endswith(b"\r\n")
    assert not call.head.endswith(b"\r\n\r\n")
    assert seen.received == [json.dumps(document(1.0, id="mine")).encode()]
    assert b"".join(seen.sent) == answer.body
    assert seen.status == 200
    assert seen.head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    assert seen.head.endswith(b"\r\n") and not seen.head.endswith(b"\r\n\r\n")


def test_heads_that_differ_only_in_sizes_have_their_own_sizes(served, observer):
    bodies = [document(*([1.0] * count)) for count in (1, 2, 9, 100)]
    with served.open(b"") as own:
        for body in bodies:
            text = json.dumps(body).encode()
            head = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
            own.sendall(head % len(text) + text)
            while b'"data"' not in own.recv(65536):
                pass

    heads = [seen.call.head for seen in observer.calls]
    sizes = [int(head.partition(b"Length: ")[2]) for head in heads]
    assert sizes == [len(json.dumps(each)) for each in bodies]
    assert [seen.received for seen in observer.calls] == [
        [json.dumps(each).encode()] for each in bodies
    ]


def test_binary_tensors_that_arrive_in_pieces(served, observer):
    raw = np.arange(FIRST, dtype=np.float32).tobytes()
    tensor = {
        "name": "x",
        "datatype": "FP32",
        "shape": [FIRST],
        "parameters": {"binary_data_size": len(raw)},
    }
    text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(text))}

    answer = served.infer(text + raw, headers=headers)

    seen = observer.only()
    assert seen.received == [text + raw]
    assert b"".join(seen.sent) == answer.body
    assert len(answer.body) > len(raw)


def test_a_packed_body_stays_packed(served, observer):
    body = zlib.compress(json.dumps(document(1.0)).encode())

    answer = served.infer(body, headers={"Content-Encoding": "deflate", "Accept-Encoding": "gzip"})

    seen = observer.only()
    assert (seen.received, seen.sent, seen.status) == ([body], [answer.body], 200)
    assert b"Content-Encoding: gzip\r\n" in seen.head


@pytest.mark.parametrize(("model", "status"), [("absent", 404), ("many", 501)])
def test_an_error_over_http(served, observer, model, status):
    answer = served.infer(document(1.0), model)

    seen = observer.only()
    assert (seen.status, seen.sent, seen.call.model) == (status, [answer.body], model)


def test_events_are_parts_of_the_answer(served, observer):
    answer = served.ask("POST", "/v2/models/many/generate_stream", {"x": [1.0, 2.0, 3.0]})

    seen = observer.only()
    assert seen.received == [b'{"x": [1.0, 2.0, 3.0]}']
    assert b"".join(seen.sent) == answer.body
    assert answer.body.count(b"data: ") == 3
    assert seen.status == 200


def test_other_requests_have_their_category(served, observer):
    served.ask("GET", "/v2/health/live?x=1")

    seen = observer.only()
    assert (seen.call.category, seen.call.target, seen.status) == (
        "health",
        "/v2/health/live?x=1",
        200,
    )


def test_a_client_that_leaves(served, observer):
    text = json.dumps(document(1.0)).encode()
    head = b"POST /v2/models/gated/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(
        text
    )
    own = served.open(head + text)
    assert served.backend.running.wait(20)
    own.close()

    seen = observer.only()
    served.backend.gate.set()
    assert (seen.status, seen.sent, seen.head) == (499, [], b"")


def test_a_call_over_grpc(served, observer):
    asked = message(1.0, id="mine")
    metadata = [("x-mine", "a b"), ("x-mine-bin", b"\0\1")]

    answer = served.stub.ModelInfer(asked, timeout=30, metadata=metadata)

    seen = observer.only()
    call = seen.call
    assert (call.protocol, call.category, call.model, call.version) == (
        "grpc",
        "inference",
        "echo",
        "",
    )
    assert (call.method, call.target) == ("POST", INFER)
    assert call.client.startswith("127.0.0.1:")
    head = call.head.decode()
    assert head.startswith(f"POST {INFER} HTTP/2\r\ngrpc-timeout: ")
    assert "\r\nx-mine: a b\r\n" in head and "\r\nx-mine-bin: AAE=\r\n" in head
    assert seen.received == [asked.SerializeToString()]
    assert type(answer).FromString(seen.sent[0]) == answer
    assert (seen.status, seen.head) == (0, b"")


def test_a_packed_call_over_grpc_is_unpacked(served, observer):
    asked = message(*([1.0] * 1000))

    served.stub.ModelInfer(asked, timeout=30, compression=grpc.Compression.Gzip)

    assert observer.only().received == [asked.SerializeToString()]


def test_an_error_over_grpc(served, observer):
    error = served.refused("ModelInfer", message(1.0, model="absent"))

    seen = observer.only()
    assert (seen.status, seen.sent) == (grpc.StatusCode.NOT_FOUND.value[0], [])
    assert seen.head.decode() == f"grpc-message: {error.details()}\r\n"


def test_a_stream_over_grpc(served, observer):
    asked = [message(1.0, 2.0, model="many"), message(3.0)]

    answers = list(served.stub.ModelStreamInfer(iter(asked), timeout=30))

    seen = observer.only()
    assert (seen.call.target, seen.call.model, seen.status) == (STREAM, "", 0)
    assert seen.received == [each.SerializeToString() for each in asked]
    assert [type(answers[0]).FromString(each) for each in seen.sent] == answers


def test_a_client_of_grpc_that_leaves(served, observer):
    served.backend.running.clear()
    served.backend.gate.clear()
    call = served.stub.ModelInfer.future(message(1.0, model="gated"), timeout=30)
    assert served.backend.running.wait(20)
    call.cancel()

    seen = observer.only()
    served.backend.gate.set()
    assert (seen.status, seen.sent) == (grpc.StatusCode.CANCELLED.value[0], [])


def test_a_call_that_no_observer_wants_goes_its_way(served, observer):
    observer.wanted = lambda call: False

    assert served.infer(document(1.0)).status == 200
    served.stub.ModelInfer(message(1.0), timeout=30)

    assert observer.calls == []


def test_an_observer_that_fails_harms_no_call(served, observer, caplog):
    def fail(*arguments):
        raise ValueError("mine")

    broken = Observer()
    broken.begin = fail
    half = Observer()
    half.begin = lambda call: type("Half", (), {"receive": fail, "send": fail, "end": fail})()
    observers = CallObservers.of(served.server)
    for each in (broken, half):
        served.call(observers.add, each)

    assert served.infer(document(1.0)).status == 200
    served.stub.ModelInfer(message(1.0), timeout=30)

    for each in (broken, half):
        served.call(observers.remove, each)
    assert [seen.status for seen in observer.calls] == [200, 0]
    assert caplog.text.count("an observer of calls failed") == 4


def test_the_fast_path_is_used_with_an_observer(served, observer, monkeypatch):
    asked = []
    monkeypatch.setattr(
        type(served.http), "_answer", lambda self, *more: asked.append(more) or 1 / 0
    )

    if served.lanes == "fast":
        assert served.infer(document(1.0)).status == 200
    assert not asked


def test_a_caller_has_its_name(tmp_path):
    from frontends.shared.access.tokens import line_of

    tokens = tmp_path / "tokens"
    tokens.write_text(line_of("anna", ["infer"], "anna"))
    for lanes in LANES:
        served = Served(tmp_path, lanes, {"auth_tokens": str(tokens)})
        observer = Observer()
        served.call(CallObservers.of(served.server).add, observer)

        served.infer(document(1.0), headers={"Authorization": "Bearer anna"})
        served.stub.ModelInfer(
            message(1.0), metadata=[("authorization", "Bearer anna")], timeout=30
        )
        refused = served.infer(document(1.0), headers={"Authorization": "Bearer bad"})
        served.close()

        assert [seen.call.caller for seen in observer.calls] == ["anna", "anna"]
        assert refused.status == 401
