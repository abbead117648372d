"""ModelStreamInfer through the router: one stream of a client, several servers."""

import queue
import threading

import grpc
import numpy as np
import pytest
from core_router.grpc.messages import MessageScanner, plain
from routing.grpc_servers import Calls, Resetting, ScriptedGrpc, request, response
from routing.requests import PATIENCE_S, until
from routing.running import good

from frontends.grpc.protocol import messages

DECOUPLED = {"model_transaction_policy": {"decoupled": True}}


def message(content):
    return b"\0" + len(content).to_bytes(4, "big") + content


@pytest.mark.parametrize("step", [1, 3, 7, 100])
def test_messages_are_found_whatever_the_pieces(step):
    sent = [message(b""), message(b"abc"), message(bytes(60))]
    data = b"".join(sent)
    scanner = MessageScanner()

    found = [
        each for at in range(0, len(data), step) for each in scanner.feed(data[at : at + step])
    ]

    assert found == sent and scanner.size == 0


def test_bytes_that_are_not_compressed_have_no_message():
    assert plain(b"\1\0\0\0\3abc", 100) == (b"", 0)


class Stream:
    """A stream whose requests a test sends one by one."""

    def __init__(self, port, **more):
        self._requests = queue.SimpleQueue()
        self._calls = Calls(port)
        self.call = self._calls.stream(iter(self._requests.get, None), **more)

    def send(self, *given, **parameters):
        self._requests.put(request(*given, **parameters))

    def end(self):
        self._requests.put(None)

    def receive(self):
        return next(self.call)

    def close(self):
        self.end()
        self._calls.close()


@pytest.fixture
def stream():
    found = []

    def make(router, **more):
        found.append(Stream(router.grpc_port, timeout=PATIENCE_S, **more))
        return found[-1]

    yield make
    for each in found:
        each.close()


def values(answer):
    assert not answer.error_message, answer.error_message
    return np.frombuffer(answer.infer_response.raw_output_contents[0], np.float32).tolist()


def test_requests_for_a_model_stay_on_one_server_in_order(router, stream):
    found = stream(router)
    for x in range(50):
        found.send("who", float(x))

    answers = [values(found.receive()) for _ in range(50)]

    assert [x for x, _ in answers] == list(range(50))
    assert len({server for _, server in answers}) == 1
    found.end()
    assert list(found.call) == [] and found.call.code() is grpc.StatusCode.OK
    assert router.metric("core_router_in_flight") == 0


def test_one_stream_reaches_models_of_several_servers_in_order(router, stream):
    found = stream(router)
    for x in range(30):
        found.send(f"only_{x % 3}", float(x))

    assert [values(found.receive()) for _ in range(30)] == [[x, x % 3] for x in range(30)]


def test_sequences_of_a_stream_stay_on_their_servers(router, stream):
    found = stream(router)
    keys = range(1, 9)
    for step in range(1, 5):
        for key in keys:
            found.send(
                "sums",
                float(step),
                sequence_id=key,
                sequence_start=step == 1,
                sequence_end=step == 4,
            )

    answers = [values(found.receive()) for _ in range(32)]

    for at, _ in enumerate(keys):
        of_one = answers[at::8]
        assert [total for total, _ in of_one] == [1, 3, 6, 10]
        assert len({server for _, server in of_one}) == 1
    assert len({server for _, server in answers}) > 1


def test_an_error_is_a_response_of_the_stream(router, stream):
    found = stream(router)
    found.send("who", 1.0)
    found.send("unknown", 1.0, id="7")
    found.send("who", 2.0)

    first, failed, second = [found.receive() for _ in range(3)]

    assert (values(first)[0], values(second)[0]) == (1, 2)
    assert "unknown model" in failed.error_message and failed.infer_response.id == "7"


def test_a_large_message_passes(router, stream):
    found = stream(router)
    found.send("who", *range(1_000_000))

    assert len(values(found.receive())) == 1_000_001
    found.send("who", 1.0)
    assert values(found.receive())[0] == 1
    found.end()
    assert list(found.call) == []
    assert router.metric("core_router_kept_bytes") == 0


def test_a_stream_that_a_client_cancels_is_cancelled_at_the_servers(router, three, stream):
    for each in three:
        each.gate.clear()
    found = stream(router)
    found.send("gated", 1.0)
    until(lambda: router.metric("core_router_in_flight", model="gated") == 1)

    found.call.cancel()

    until(lambda: router.metric("core_router_in_flight", model="gated") == 0)
    for each in three:
        each.gate.set()


def test_an_idle_stream_ends_with_the_router(route, three, stream):
    router = route([each.address for each in three])
    found = stream(router)
    found.send("who", 1.0)
    found.receive()

    router.drain().result(PATIENCE_S)

    with pytest.raises(grpc.RpcError) as error:
        found.receive()
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.fixture
def checked(scripted):
    """Two servers as checks see them."""
    return [scripted(good), scripted(good)]


def answer_all(text):
    def stream(requests, context):
        for data in requests:
            asked = messages.ModelInferRequest.FromString(data)
            made = messages.ModelStreamInferResponse()
            made.infer_response.CopyFrom(response(asked.model_name, asked.id, text))
            yield made.SerializeToString()

    return stream


@pytest.fixture
def servers():
    found = [ScriptedGrpc(), ScriptedGrpc()]
    for each, text in zip(found, ("one", "two"), strict=True):
        each.stream = answer_all(text)
    yield found
    for each in found:
        each.close()


def router_of(route, checked, *ports):
    return route([f"{each.name}:{port}" for each, port in zip(checked, ports, strict=True)])


def text_of(answer):
    return answer.infer_response.parameters["text"].string_param


def test_requests_that_wait_for_a_lost_server_go_to_another(
    route, checked, servers, stream, thread
):
    bad = Resetting(thread)
    router = router_of(route, checked, bad.port, servers[1].port)

    for _ in range(8):  # the first server of a stream is random
        found = stream(router)
        for key in range(5):
            found.send("m", id=key)
        answers = [found.receive() for _ in range(5)]
        assert [each.infer_response.id for each in answers] == list("01234")
        assert {text_of(each) for each in answers} == {"two"}

    assert bad.connections > 0
    bad.close()


def test_a_stream_goes_on_when_its_server_ends(route, checked, servers, stream):
    router = router_of(route, checked, *[each.port for each in servers])
    found = stream(router)
    found.send("m", id=1)
    first = {"one": 0, "two": 1}[text_of(found.receive())]

    servers[first].close()
    found.send("m", id=2)

    assert text_of(found.receive()) == ("two", "one")[first]


def test_a_stream_leaves_a_server_that_is_drained(route, checked, servers, stream):
    router = router_of(route, checked, *[each.port for each in servers])
    found = stream(router)
    found.send("m")
    first = {"one": 0, "two": 1}[text_of(found.receive())]

    checked[first].ready = 503
    until(lambda: router.servers()[checked[first].name]["state"] == "not ready")
    found.send("m")

    assert text_of(found.receive()) == ("two", "one")[first]


def test_a_request_that_a_server_refuses_in_a_stream_goes_to_another(
    route, checked, servers, stream
):
    def refuse(requests, context):
        for data in requests:
            made = messages.ModelStreamInferResponse(error_message="ending")
            made.infer_response.id = messages.ModelInferRequest.FromString(data).id
            yield made.SerializeToString()

    servers[0].stream = refuse
    router = router_of(route, checked, *[each.port for each in servers])

    for _ in range(8):
        found = stream(router)
        found.send("m", id=1)
        found.send("m", id=2)
        answers = [found.receive() for _ in range(2)]
        assert [text_of(each) for each in answers] == ["two", "two"]
        assert [each.infer_response.id for each in answers] == ["1", "2"]
    assert servers[0].calls

    servers[1].stream = refuse
    found = stream(router)
    found.send("m", id=1)
    assert found.receive().error_message == "ending"


def test_responses_of_a_decoupled_model_pass_as_they_come(route, checked, servers, stream):
    def three_times(requests, context):
        for data in requests:
            asked = messages.ModelInferRequest.FromString(data)
            for text in "abc" if asked.model_name == "many" else "1":
                made = messages.ModelStreamInferResponse()
                made.infer_response.CopyFrom(response(asked.model_name, asked.id, text))
                yield made.SerializeToString()

    for each, server in zip(checked, servers, strict=True):
        server.stream = three_times
        each.config = DECOUPLED
        each.index = [{"name": "many", "version": "1", "state": "READY"}]
    router = router_of(route, checked, *[each.port for each in servers])
    found = stream(router)
    found.send("many", id=1)
    found.send("many", id=2)

    assert [text_of(found.receive()) for _ in range(6)] == list("abcabc")
    assert router.metric("core_router_in_flight", model="many") == 1
    server = next(each for each in servers if each.calls)
    server.close()
    with pytest.raises(grpc.RpcError) as error:
        found.receive()
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "server 127.0.0.1" in error.value.details()
    assert router.metric("core_router_in_flight", model="many") == 0


def test_the_status_of_a_server_ends_the_stream(route, checked, servers, stream):
    for each in servers:
        each.stream = lambda requests, context: context.abort(
            grpc.StatusCode.UNAUTHENTICATED, "a token is missing"
        )
    found = stream(router_of(route, checked, *[each.port for each in servers]))
    found.send("m")

    with pytest.raises(grpc.RpcError) as error:
        found.receive()

    assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert error.value.details() == "a token is missing"


def test_a_client_that_does_not_read_slows_its_server_down(route, checked, servers, stream):
    sent = threading.Semaphore(0)
    large = messages.ModelStreamInferResponse()
    large.infer_response.CopyFrom(response("m", text="x" * (1 << 20)))
    data = large.SerializeToString()

    def much(requests, context):
        for _ in requests:
            for _ in range(200):
                yield data
                sent.release()

    for each, server in zip(checked, servers, strict=True):
        server.stream = much
        each.config = DECOUPLED
        each.index = [{"name": "many", "version": "1", "state": "READY"}]
    router = router_of(route, checked, *[each.port for each in servers])
    found = stream(router)
    found.send("many")
    found.receive()

    count = 0
    while sent.acquire(timeout=1):
        count += 1

    assert count < 60
    for _ in range(199):
        found.receive()


def test_a_stream_without_a_server_says_why(route, stream):
    found = stream(route(["127.0.0.1:9:9"]))
    found.send("m")

    with pytest.raises(grpc.RpcError) as error:
        found.receive()

    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "127.0.0.1:9: down" in error.value.details()
