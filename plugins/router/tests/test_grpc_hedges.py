"""Second copies of calls over gRPC: whose answer the client gets."""

import threading

import grpc
import pytest
from routing.grpc_servers import Calls, Resetting, ScriptedGrpc, request, response
from routing.requests import PATIENCE_S, ask, until
from routing.running import good


class Slow:
    """Answers when it has been allowed to. left: calls that were cancelled before."""

    def __init__(self):
        self.begun, self.left, self.goes_on = 0, 0, threading.Event()

    def __call__(self, data, context):
        self.begun += 1
        ended = threading.Event()
        if not context.add_callback(ended.set):
            ended.set()  # cancelled before this
        while not self.goes_on.wait(0.01):
            if ended.is_set():
                self.left += 1
                break
        return response(text="slow").SerializeToString()


def fine(data, context):
    return response(text="good").SerializeToString()


def full(data, context):
    context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full")


def broken(data, context):
    context.abort(grpc.StatusCode.INTERNAL, "broken")


class Both:
    """Both servers of a pair: `first` answers the first call of the router, `copy` the second one."""

    def __init__(self, first, copy):
        self._responses, self.count, self._lock = (first, copy), 0, threading.Lock()

    def __call__(self, data, context):
        with self._lock:
            at, self.count = self.count, self.count + 1
        return self._responses[min(at, 1)](data, context)


class Hedged:
    """Two servers, and a router before them that sends copies after a moment."""

    def __init__(self, scripted, route):
        self.servers = [ScriptedGrpc(), ScriptedGrpc()]
        self.names = [scripted(good).name for _ in self.servers]
        self.addresses = [
            f"{name}:{each.port}" for name, each in zip(self.names, self.servers, strict=True)
        ]
        self.router = route(self.addresses, {"retries": 0}, hedge_quantile=0.5)
        for _ in range(100):
            self.router.router.hedging.answered("m", 0.03)
        self.calls = Calls(self.router.grpc_port)

    def answer_by(self, *responses):
        for each, respond in zip(self.servers, responses, strict=True):
            each.respond = respond

    def infer(self):
        return self.calls.infer().parameters["text"].string_param

    def metric(self, name):
        return self.router.metric(f"core_router_{name}")

    def close(self):
        self.calls.close()
        for each in self.servers:
            each.close()


@pytest.fixture
def pair(scripted, route, thread):
    found = Hedged(scripted, route)
    found.thread, found.route, found.scripted = thread, route, scripted
    yield found
    found.close()


def test_another_server_answers_for_a_slow_one(pair):
    slow = Slow()
    pair.answer_by(slow, fine)

    assert {pair.infer() for _ in range(10)} == {"good"}

    until(lambda: slow.left == slow.begun)
    assert pair.metric("hedges") >= pair.metric("hedges_won") > 0
    assert pair.metric("in_flight") == pair.metric("lost") == pair.metric("retries") == 0


def test_the_first_server_may_still_be_sooner(pair):
    slow, slower = Slow(), Slow()
    both = Both(slow, slower)
    pair.answer_by(both, both)
    threading.Thread(target=lambda: until(lambda: both.count == 2) and slow.goes_on.set()).start()

    assert pair.infer() == "slow"

    until(lambda: slower.left == 1)
    assert (pair.metric("hedges"), pair.metric("hedges_won"), pair.metric("in_flight")) == (1, 0, 0)


@pytest.mark.parametrize("respond", [broken, full])
def test_a_copy_that_fails_leaves_the_call_to_the_first_server(pair, respond):
    slow = Slow()
    both = Both(slow, respond)
    pair.answer_by(both, both)
    threading.Thread(
        target=lambda: (
            until(lambda: pair.metric("in_flight") == 1 and both.count == 2) and slow.goes_on.set()
        )
    ).start()

    assert pair.infer() == "slow"
    assert both.count == 2 and pair.metric("in_flight") == 0


def test_the_copy_answers_when_the_first_server_fails(pair):
    copied = threading.Event()

    def first(data, context):
        copied.wait(PATIENCE_S)
        broken(data, context)

    def copy(data, context):
        copied.set()
        until(lambda: pair.metric("in_flight") == 1)
        return fine(data, context)

    both = Both(first, copy)
    pair.answer_by(both, both)

    assert pair.infer() == "good"
    assert pair.metric("in_flight") == pair.metric("retries") == 0


def test_a_client_that_leaves_ends_both(pair):
    slow, slower = Slow(), Slow()
    pair.answer_by(slow, slower)
    call = pair.calls.unary().future(request("m", 1.0))
    until(lambda: slow.begun and slower.begun)

    call.cancel()

    until(lambda: slow.left == slower.left == 1)
    until(lambda: pair.metric("in_flight") == 0)


def test_a_server_that_left_before_the_delay_gets_no_copy(pair):
    slow = Slow()
    pair.answer_by(slow, slow)
    for _ in range(1000):
        pair.router.router.hedging.answered("m", 0.5)
    call = pair.calls.unary().future(request("m", 1.0))
    until(lambda: slow.begun)
    (other,) = [each for each in pair.servers if not each.calls]
    name = next(each for each, at in zip(pair.names, pair.servers, strict=True) if at is other)
    ask(pair.router.admin, f"/servers/{name}/drain", method="POST")
    threading.Timer(0.7, slow.goes_on.set).start()

    assert call.result().parameters["text"].string_param == "slow"
    assert not other.calls and pair.metric("hedges") == 0


def in_shared_memory():
    made = request("m", 1.0)
    made.inputs[0].parameters["shared_memory_region"].string_param = "a"
    return made


@pytest.mark.parametrize(
    ("made", "how"),
    [
        (request("m", 1.0, sequence_id=5), None),
        (in_shared_memory(), None),
        (in_shared_memory(), grpc.Compression.Gzip),
    ],
)
def test_calls_that_two_servers_must_not_execute_have_no_copy(pair, made, how):
    slow = Slow()
    pair.answer_by(slow, slow)
    threading.Timer(0.2, slow.goes_on.set).start()

    pair.calls.unary()(made, timeout=PATIENCE_S, compression=how)

    assert slow.begun == 1 and pair.metric("hedges") == 0


def test_a_call_of_a_sequence_is_not_repeated(pair):
    """Also where no configuration says that the model has sequences."""
    failing = Resetting(pair.thread)
    router = pair.route([f"{pair.scripted(good).name}:{failing.port}", *pair.addresses])
    pair.answer_by(fine, fine)
    calls = Calls(router.grpc_port)
    codes = []
    for number in range(1, 21):
        try:
            calls.infer("m", 1.0, sequence_id=number)
        except grpc.RpcError as error:
            codes.append(error.code())
    calls.close()
    failing.close()

    assert failing.connections > 0
    assert set(codes) == {grpc.StatusCode.UNAVAILABLE}
    assert router.metric("core_router_retries", reason="lost") == 0
