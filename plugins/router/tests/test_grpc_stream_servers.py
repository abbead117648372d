"""The servers of a ModelStreamInfer: those that end, refuse, are decoupled, or send too much."""

import threading
import time

import grpc
import pytest
from core_router.targets import Purpose
from routing.grpc_servers import Resetting, ScriptedGrpc, response
from routing.requests import PATIENCE_S, until
from routing.running import good

from frontends.grpc.protocol import messages

DECOUPLED = {"model_transaction_policy": {"decoupled": True}}


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


def test_requests_of_a_client_that_has_ended_its_side_reach_another_server(
    route, checked, servers, stream
):
    has_all, is_lost = threading.Event(), threading.Event()
    answer = servers[0].stream
    calls = []

    def lost_once(requests, context):
        calls.append(context)
        if len(calls) > 1:
            yield from answer(requests, context)
            return
        for _ in range(5):
            next(requests)
        has_all.set()
        assert is_lost.wait(PATIENCE_S)
        context.abort(grpc.StatusCode.UNAVAILABLE, "lost")

    router = router_of(route, checked, *[each.port for each in servers])
    while not all(each.calls for each in servers):  # connections to both are open
        found = stream(router)
        found.send("m")
        found.receive()
    for each in servers:
        each.stream = lost_once
    found = stream(router)
    for id in range(5):
        found.send("m", id=id)
    assert has_all.wait(PATIENCE_S)
    found.end()
    time.sleep(0.1)  # until the router knows
    is_lost.set()

    assert [found.receive().infer_response.id for _ in range(5)] == list("01234")
    assert list(found.call) == [] and found.call.code() is grpc.StatusCode.OK


def test_a_server_that_ends_without_all_responses_is_a_failure(route, checked, servers, stream):
    for each in servers:
        each.stream = lambda requests, context: iter([next(requests)][:0])
    found = stream(router_of(route, checked, *[each.port for each in servers]))
    found.send("m")

    with pytest.raises(grpc.RpcError) as error:
        found.receive()

    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "without all responses" in error.value.details()


def first_of_three(asked, has_one, is_lost, count=1):
    """Answer each request `count` times of three; then be lost."""

    def stream(requests, context):
        for data in requests:
            request = messages.ModelInferRequest.FromString(data)
            for _ in range(count):
                made = messages.ModelStreamInferResponse()
                made.infer_response.CopyFrom(response(request.model_name, request.id))
                yield made.SerializeToString()
            has_one.set()
            asked.append(request.id)
        assert is_lost.wait(PATIENCE_S)
        context.abort(grpc.StatusCode.UNAVAILABLE, "lost")

    return stream


def lost_within(router, servers, stream, count=1):
    """Return the status of a stream whose client has ended its side, after `count` of three responses."""
    asked, has_one, is_lost = [], threading.Event(), threading.Event()
    for each in servers:
        each.stream = first_of_three(asked, has_one, is_lost, count)
    found = stream(router)
    found.send("m", id=1)
    for _ in range(count):
        found.receive()
    found.end()
    until(lambda: asked)
    time.sleep(0.1)  # until the router knows
    is_lost.set()
    with pytest.raises(grpc.RpcError) as error:
        found.receive()
    return error.value.code()


def test_responses_that_are_missing_of_a_server_without_an_index_are_no_good_end(
    route, checked, servers, stream
):
    for each in checked:
        each.index_status = 401
    router = router_of(route, checked, *[each.port for each in servers])

    assert lost_within(router, servers, stream) is grpc.StatusCode.UNAVAILABLE


def test_a_model_that_answers_a_request_twice_counts_as_decoupled(route, checked, servers, stream):
    for each in checked:
        each.config_status = 500
    router = router_of(route, checked, *[each.port for each in servers])

    assert lost_within(router, servers, stream, 2) is grpc.StatusCode.UNAVAILABLE


def test_a_second_response_is_none_to_the_next_request(route, checked, servers, stream):
    def twice(requests, context):
        first, second = (messages.ModelInferRequest.FromString(next(requests)) for _ in range(2))
        for request in (first, first):
            made = messages.ModelStreamInferResponse()
            made.infer_response.CopyFrom(response(request.model_name, request.id))
            yield made.SerializeToString()
        context.abort(grpc.StatusCode.UNAVAILABLE, f"lost before {second.id}")

    for each in servers:
        each.stream = twice
    found = stream(router_of(route, checked, *[each.port for each in servers]))
    found.send("m", id=1)
    found.send("m", id=2)
    found.end()

    assert [found.receive().infer_response.id for _ in range(2)] == ["1", "1"]
    with pytest.raises(grpc.RpcError) as error:
        found.receive()
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("is_readable_first", [True, False])
def test_a_configuration_is_read_again(route, checked, servers, is_readable_first):
    if not is_readable_first:
        for each in checked:
            each.config, each.config_status = DECOUPLED, 500
    router = router_of(route, checked, *[each.port for each in servers])
    models = [each.models["m"] for each in router.router.table.servers.values()]
    assert not any(each.is_decoupled for each in models)

    for each in checked:  # it is readable now; or a reload has changed it, and not the index
        each.config, each.config_status = DECOUPLED, 200

    until(lambda: all(each.is_decoupled for each in models))
    assert router.router.table.for_model(Purpose.INFERENCE, "m", "").is_decoupled
