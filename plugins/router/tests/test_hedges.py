"""Second copies of requests over HTTP: when they are sent, and whose response the client gets."""

import asyncio
import http.client
import time

import pytest
from core_router.choice.hedging import Hedging
from routing.hedging import Slow
from routing.requests import ask, inputs, until
from routing.running import good, reset, said

INFER = "/v2/models/m/infer"


# when -----------------------------------------------------------------------


def test_a_copy_waits_for_the_quantile_of_the_last_durations():
    found = Hedging(0.9, 0.05)
    for number in range(99):
        found.answered("m", number / 1000)
    assert found.begin("m") == 0  # too few

    for number in range(99, 200):
        found.answered("m", number / 1000)

    assert found.begin("m") == pytest.approx(0.18)
    assert found.begin("other") == 0
    for _ in range(1000):
        found.answered("m", 0.5)
    assert found.begin("m") == 0.5


def test_the_models_that_are_used_keep_their_durations():
    found = Hedging(0.5, 0.05)
    for number in range(1500):
        for _ in range(100):
            found.answered("m", 0.5)
        found.answered(f"other {number}", 0.5)

    assert found.begin("m") == 0.5
    assert len(found._models) == 1000


def test_copies_are_a_part_of_the_requests():
    found = Hedging(0.9, 0.05)
    at_once = sum(found.take() for _ in range(100))
    for _ in range(1000):
        found.begin("m")

    assert at_once == 10
    assert sum(found.take() for _ in range(100)) == 10  # no more than that is saved up

    copies = 0
    for _ in range(1000):
        found.begin("m")
        copies += found.take()
    assert copies == pytest.approx(50, abs=1)
    assert found.sent == at_once + 10 + copies


# whose response -------------------------------------------------------------


def infer(router, path=INFER):
    return ask(router.port, path, inputs(1.0))


def test_another_server_answers_for_a_slow_one(copying):
    slow = Slow()
    (one, other), router = copying(slow, good)

    found = [infer(router) for _ in range(10)]

    assert all(each.body.startswith(b"good:") for each in found)
    assert len(one.requests) + len(other.requests) > 10
    until(lambda: slow.left == len(one.requests))
    assert router.metric("core_router_hedges") >= router.metric("core_router_hedges_won") > 0
    assert router.metric("core_router_in_flight") == router.metric("core_router_retries") == 0
    assert router.metric("core_router_lost") == 0


def test_the_first_server_may_still_be_sooner(copying, thread):
    slow, slower = Slow(), Slow()
    (one, other), router = copying(slow, slower)
    sending = [slow, slower]

    async def go_on():
        while len(one.requests) + len(other.requests) < 2:
            await asyncio.sleep(0.01)
        first = 0 if one.first_s < other.first_s else 1
        sending[first].goes_on.set()
        return first

    for each in (one, other):
        each.first_s = float("inf")
        each.respond = noting(each, each.respond)
    going = asyncio.run_coroutine_threadsafe(go_on(), thread.loop)
    found = infer(router)

    assert found.body == b"slow"
    until(lambda: sending[1 - going.result()].left == 1)
    assert router.metric("core_router_hedges") == 1
    assert router.metric("core_router_hedges_won") == router.metric("core_router_in_flight") == 0


def noting(server, respond):
    async def noted(reader, writer, line, body):
        server.first_s = min(server.first_s, time.monotonic())
        await respond(reader, writer, line, body)

    return noted


class Second:
    """Both servers of a pair: the first request of the router is slow, its copy is answered by `respond`."""

    def __init__(self, respond):
        self.slow, self._respond, self.count = Slow(), respond, 0

    async def __call__(self, reader, writer, line, body):
        self.count += 1
        await (self.slow if self.count == 1 else self._respond)(reader, writer, line, body)


async def fail(reader, writer, line, body):
    writer.write(said(b'{"error":"broken"}', 500))


async def limit(reader, writer, line, body):
    writer.write(said(b'{"error":"too many"}', 429))


@pytest.mark.parametrize("respond", [fail, reset, limit])
def test_a_copy_that_fails_leaves_the_request_to_the_first_server(copying, thread, respond):
    both = Second(respond)
    _, router = copying(both, both)

    async def go_on():
        while both.count < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        both.slow.goes_on.set()

    asyncio.run_coroutine_threadsafe(go_on(), thread.loop)
    found = infer(router)

    assert (found.status, found.body) == (200, b"slow")
    assert both.count == 2
    assert router.metric("core_router_hedges") == 1
    assert router.metric("core_router_in_flight") == router.metric("core_router_refused") == 0


class First:
    """Both servers of a pair: the first request fails when its copy has come, which is answered later."""

    def __init__(self, respond):
        self._respond, self._copied, self.count = respond, asyncio.Event(), 0

    async def __call__(self, reader, writer, line, body):
        self.count += 1
        if self.count == 1:
            await self._copied.wait()
            await self._respond(reader, writer, line, body)
        else:
            self._copied.set()
            await asyncio.sleep(0.1)
            await good(reader, writer, line, body)


@pytest.mark.parametrize("respond", [fail, reset])
def test_the_copy_answers_when_the_first_server_fails(copying, respond):
    both = First(respond)
    _, router = copying(both, both, limits={"retries": 0})

    found = infer(router)

    assert found.status == 200 and found.body.startswith(b"good:")
    assert both.count == 2
    assert router.metric("core_router_retries") == router.metric("core_router_in_flight") == 0


def test_a_client_that_leaves_ends_both(copying):
    slow, slower = Slow(), Slow()
    (one, other), router = copying(slow, slower)
    client = http.client.HTTPConnection("127.0.0.1", router.port)
    client.request("POST", INFER, b"{}")
    until(lambda: one.requests and other.requests)

    client.close()

    until(lambda: slow.left == slower.left == 1)
    assert router.metric("core_router_in_flight") == 0


def test_a_connection_goes_on_after_a_copy_has_answered(copying):
    _, router = copying(Slow(), good)
    client = http.client.HTTPConnection("127.0.0.1", router.port)

    for number in range(10):
        body = b'{"number":%d}' % number
        client.request("POST", INFER, body)
        assert client.getresponse().read() == b"good:" + body
    client.close()


def test_what_may_not_be_repeated_has_no_copy(copying, thread):
    slow = Slow()
    (one, other), router = copying(slow, slow)
    thread.loop.call_soon_threadsafe(lambda: thread.loop.call_later(0.2, slow.goes_on.set))

    assert infer(router, "/v2/models/m/other").body == b"slow"
    assert len(one.requests) + len(other.requests) == 1


def test_a_model_with_shares_has_no_copies(copying, thread):
    slow = Slow()
    (one, other), router = copying(slow, slow)
    ask(router.admin, "/shares", {"m": {one.name: 0}}, method="PUT")
    thread.loop.call_soon_threadsafe(lambda: thread.loop.call_later(0.2, slow.goes_on.set))

    assert infer(router).body == b"slow"
    assert len(one.requests) == 0 and len(other.requests) == 1


def test_without_the_option_there_are_no_copies(scripted, route):
    router = route([scripted(good).name])

    assert router.router.hedging is None
    assert "hedges" not in ask(router.admin, "/metrics").body.decode()
