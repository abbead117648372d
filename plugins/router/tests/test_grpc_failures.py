"""Servers over gRPC that die, refuse and hang: which calls another server gets, and what the client sees."""

import functools
import threading

import grpc
import pytest
from routing.grpc_servers import V2, Calls, RefusingLate, Resetting, ScriptedGrpc, request, response
from routing.requests import until
from routing.running import good


class Pair:
    """A server over gRPC that misbehaves, one that does not, and a router before both.

    Over HTTP, checks find both ready.
    """

    def __init__(self, scripted, route, bad, fine, limits=None, **options):
        self.bad, self.fine = bad, fine
        self.checked = [scripted(good), scripted(good)]
        names = [
            f"{each.name}:{port}" for each, port in zip(self.checked, (bad, fine.port), strict=True)
        ]
        self.router = route(names, limits, **options)
        self.calls = Calls(self.router.grpc_port)
        self.bad_name = self.checked[0].name


@pytest.fixture
def servers():
    found = [ScriptedGrpc(), ScriptedGrpc()]
    for each in found:
        each.respond = lambda data, context: response(text="good").SerializeToString()
    yield found
    for each in found:
        each.close()


@pytest.fixture
def pair(servers, scripted, route):
    bad, fine = servers
    found = Pair(scripted, route, bad.port, fine)
    found.bad = bad
    yield found
    found.calls.close()


@pytest.fixture
def resetting(servers, scripted, route, thread):
    bad = Resetting(thread)
    found = Pair(scripted, route, bad.port, servers[1])
    found.bad = bad
    yield found
    found.calls.close()
    bad.close()


def aborts(code, text="no"):
    return lambda data, context: context.abort(code, text)


def test_a_call_that_a_server_refuses_goes_to_another(pair):
    pair.bad.respond = aborts(grpc.StatusCode.UNAVAILABLE)

    found = [pair.calls.infer() for _ in range(20)]

    assert {each.parameters["text"].string_param for each in found} == {"good"}
    refused = pair.router.metric("core_router_retries", reason="refused")
    assert refused == len(pair.bad.calls) > 0


def test_if_all_servers_refuse_the_client_gets_their_answer(pair):
    pair.bad.respond = pair.fine.respond = aborts(grpc.StatusCode.UNAVAILABLE, "full: 100 %")

    with pytest.raises(grpc.RpcError) as found:
        pair.calls.infer()

    assert (found.value.code(), found.value.details()) == (
        grpc.StatusCode.UNAVAILABLE,
        "full: 100 %",
    )
    assert [len(pair.bad.calls), len(pair.fine.calls)] == [1, 1]


def test_another_error_is_the_clients(pair):
    pair.bad.respond = pair.fine.respond = aborts(grpc.StatusCode.INVALID_ARGUMENT, "shape")

    with pytest.raises(grpc.RpcError) as found:
        pair.calls.infer()

    assert found.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert len(pair.bad.calls) + len(pair.fine.calls) == 1


def test_a_model_that_fails_again_and_again_is_ejected(pair):
    pair.bad.respond = aborts(grpc.StatusCode.INTERNAL)
    failures = 0

    for _ in range(60):
        try:
            pair.calls.infer()
        except grpc.RpcError as error:
            failures += error.code() is grpc.StatusCode.INTERNAL

    assert failures == len(pair.bad.calls) == 5
    assert pair.router.metric("core_router_ejections", server=pair.bad_name) == 1


def test_a_call_that_was_lost_is_repeated(resetting):
    found = [resetting.calls.infer() for _ in range(10)]

    assert {each.parameters["text"].string_param for each in found} == {"good"}
    lost = resetting.router.metric("core_router_retries", reason="lost")
    assert resetting.bad.connections >= lost > 0
    assert resetting.router.metric("core_router_lost", server=resetting.bad_name) == lost


def test_what_changes_a_server_is_not_repeated(resetting):
    method = resetting.calls.unary("Other")
    resetting.fine.stream = lambda requests, context: iter([response().SerializeToString()])
    codes = []

    for _ in range(20):
        try:
            method(request())
            codes.append(grpc.StatusCode.OK)
        except grpc.RpcError as error:
            codes.append(error.code())
            text = error.details()

    assert set(codes) == {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}
    assert codes.count(grpc.StatusCode.OK) == len(resetting.fine.calls)
    assert resetting.bad_name in text and "was lost" in text


def test_without_a_connection_another_server_answers(servers, scripted, route):
    found = Pair(scripted, route, 9, servers[1])

    assert {found.calls.infer().model_name for _ in range(10)} == {"m"}
    assert found.router.metric("core_router_retries", reason="unsent") > 0
    found.calls.close()


def test_without_a_server_the_error_says_what_is_wrong(route):
    calls = Calls(route(["127.0.0.1:9:9"]).grpc_port)

    with pytest.raises(grpc.RpcError) as found:
        calls.infer("m", 1.0)

    assert found.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "127.0.0.1:9: down (" in found.value.details()
    assert "model 'm'" in found.value.details()
    calls.close()


def test_calls_move_from_a_server_that_no_longer_answers(servers, scripted, route):
    held = threading.Event()
    bad, fine = servers
    bad.respond = lambda data, context: held.wait(20) and b""
    found = Pair(
        scripted, route, bad.port, fine, check_s=0.05, check_timeout_s=0.1, check_failures=2
    )
    futures = [found.calls.unary().future(request()) for _ in range(8)]
    until(lambda: len(bad.calls) > 0)

    found.checked[0].is_hung = True

    assert {each.result(20).parameters["text"].string_param for each in futures} == {"good"}
    held.set()
    found.calls.close()


def test_the_time_of_a_call_is_that_of_all_its_attempts(pair):
    left = []

    def slow(data, context):
        threading.Event().wait(0.3)
        context.abort(grpc.StatusCode.UNAVAILABLE, "no")

    def fine(data, context):
        left.append(context.time_remaining())
        return response().SerializeToString()

    pair.bad.respond, pair.fine.respond = slow, fine
    until(lambda: pair.calls.infer(timeout=5.0) and pair.bad.calls)

    assert min(left) < 4.8


def test_a_start_of_a_sequence_goes_to_another_server(servers, scripted, route):
    bad, fine = servers
    bad.respond = aborts(grpc.StatusCode.UNAVAILABLE)
    found = Pair(scripted, route, bad.port, fine)
    for each in found.checked:
        each.config = {"sequence_batching": {}}
        each.index = [{"name": "s", "version": "1", "state": "READY"}]
    until(lambda: all("s" in each["models"] for each in found.router.servers().values()))

    for key in range(1, 9):
        found.calls.infer("s", 1.0, sequence_id=key, sequence_start=True)
        assert found.calls.infer("s", 1.0, sequence_id=key, sequence_end=True)

    assert len(fine.calls) == 16 > len(bad.calls) > 0
    found.calls.close()


def test_a_request_that_is_no_message_gets_a_servers_answer(pair):
    pair.bad.respond = pair.fine.respond = aborts(grpc.StatusCode.INVALID_ARGUMENT, "no message")
    channel = grpc.insecure_channel(f"127.0.0.1:{pair.router.grpc_port}")

    with pytest.raises(grpc.RpcError) as found:
        channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")(b"\xff\xff\xff")

    assert found.value.details() == "no message"
    channel.close()


def test_a_request_that_is_not_kept_is_not_sent_again(servers, scripted, route, thread):
    bad, fine = RefusingLate(thread), servers[1]
    lengths = []
    fine.respond = lambda data, context: lengths.append(len(data)) or b""
    found = Pair(scripted, route, bad.port, fine, {"kept_body_bytes": 1000})
    channel = grpc.insecure_channel(f"127.0.0.1:{found.router.grpc_port}")
    large = request("m", *range(1000)).SerializeToString()
    codes = []

    for _ in range(20):
        ends = threading.Event()
        call = channel.stream_unary(V2 + "ModelInfer").future(_then_end(large, ends), timeout=20)
        until(functools.partial(_has_begun, found.router, call))
        ends.set()
        codes.append(call.code())

    # The first one may be whole before the connection is open, and is sent again then.
    assert bad.refused - 1 <= codes.count(grpc.StatusCode.UNAVAILABLE) <= bad.refused
    assert bad.refused > 1
    assert set(lengths) == {len(large)}
    channel.close()
    found.calls.close()
    bad.close()


def _then_end(data, ends):
    yield data
    ends.wait(20)


def _has_begun(router, call):
    return router.metric("core_router_in_flight") == 1 or call.done()
