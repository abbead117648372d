"""Connections of gRPC: one call or connection that fails leaves the others as they are."""

import asyncio
import types

import pytest
from core_router.grpc.all_servers import OwnCall
from core_router.grpc.native.blocks import field
from core_router.grpc.native.link import ClientLink, Flusher, Receiver, ServerLink
from core_router.grpc.pool import Attempt, LinkPool
from core_router.grpc.statuses import HEAD
from routing.grpc_servers import Calls, ScriptedGrpc, response
from routing.http2 import DATA, HEADERS, PREFACE, RESET, SETTINGS, Loop, Transport, frame, kinds
from routing.requests import until
from routing.running import good


def call(stream, path=b"/x"):
    """Return the head of a call, which has ended its side."""
    # POST, http, authority, path
    head = b"\x83\x86\x01\x01a\x04" + bytes([len(path)]) + path
    return frame(HEADERS, stream, head, flags=5)


def cancelled(stream):
    return call(stream) + frame(RESET, stream, bytes([0, 0, 0, 8]))


class Told(Receiver):
    """What gets the news of a call. Whatever has a path with "bad" raises an error."""

    def __init__(self, path):
        self.path, self.is_whole, self.error = path, False, None

    def received(self, head, data, trailers, is_over):
        self.is_whole = is_over
        if b"bad" in self.path:
            raise OverflowError(self.path)

    def gone(self, error):
        self.error = error


class Owner:
    """The port of a ClientLink, and the call of an Attempt."""

    now_s = 0.0

    def __init__(self):
        self.calls = []
        self.told = []

    def enter(self, link):
        return True

    def leave(self, link):
        pass

    def begin(self, link, id, head):
        self.calls.append(Told(field(head, b":path")))
        return self.calls[-1]


class Client:
    """A connection of a client."""

    def __init__(self):
        self.loop, self.owner, self.transport = Loop(), Owner(), Transport()
        self.link = ClientLink(self.owner, Flusher(self.loop))
        self.link.connection_made(self.transport)
        self.send(PREFACE + frame(SETTINGS))

    def send(self, data):
        self.link.get_buffer(-1)[: len(data)] = data
        self.link.buffer_updated(len(data))
        self.loop.run()


def test_a_call_whose_receiver_fails_is_reset_and_the_others_go_on(caplog):
    client = Client()
    client.send(call(1, b"/good") + call(3, b"/bad") + call(5, b"/good"))

    assert [each.path for each in client.owner.calls] == [b"/good", b"/bad", b"/good"]
    assert [each.is_whole for each in client.owner.calls] == [True] * 3
    assert [each.error for each in client.owner.calls] == [None, 2, None]
    assert [each for each in kinds(client.transport.sent) if each[0] == RESET] == [(RESET, 3)]
    assert "a gRPC call failed" in caplog.text and not client.transport.is_aborted


def test_a_client_may_cancel_a_thousand_calls_in_each_second():
    client = Client()
    for second in range(2):
        client.send(b"".join(cancelled(2 * (900 * second + at) + 1) for at in range(900)))
        client.link.tick()

    assert not client.transport.is_aborted
    client.send(b"".join(cancelled(2 * at + 1) for at in range(1800, 2900)))
    assert client.transport.is_aborted


def test_a_connection_whose_transport_fails_ends_and_the_others_are_sent(caplog):
    loop = Loop()
    flusher = Flusher(loop)
    transports = [Transport(OSError("no")), Transport()]
    for each in transports:
        ServerLink(None, None, flusher).connection_made(each)

    loop.run()

    assert transports[0].is_aborted and not transports[1].is_aborted
    assert transports[1].sent.count(PREFACE) == 1
    assert "a gRPC connection failed" in caplog.text


class Waiting:
    """A call that waits for a connection."""

    def __init__(self, fails):
        self.news = []
        self._fails = fails

    def connected(self, attempt, link):
        self.news.append("connected")
        if self._fails:
            raise OverflowError

    def not_connected(self, attempt, reason):
        self.news.append(reason)
        if self._fails:
            raise OverflowError


@pytest.mark.parametrize("is_open", [True, False])
def test_a_call_that_fails_leaves_those_that_wait_with_it(is_open, caplog):
    server = types.SimpleNamespace(is_removed=False)
    port = types.SimpleNamespace(connect=lambda pool: None)
    pool = LinkPool(server, port)
    calls = [Waiting(True), Waiting(False)]
    for each in calls:
        pool.take(Attempt(each, None, 0.0))

    if is_open:
        pool.opened(ServerLink(server, pool, Flusher(Loop())))
    else:
        pool.not_opened("no")

    assert [each.news for each in calls] == [["connected" if is_open else "no"]] * 2
    assert "a gRPC call failed" in caplog.text


@pytest.mark.parametrize("is_open", [True, False])
def test_a_call_for_all_servers_ends_at_its_server_with_the_call_of_the_client(is_open):
    loop, transport = Loop(), Transport()
    server = types.SimpleNamespace(is_removed=False, any_model=None)
    pool = LinkPool(server, types.SimpleNamespace(connect=lambda pool: None))
    link = ServerLink(server, pool, Flusher(loop))
    link.connection_made(transport)

    async def call_and_cancel():
        found = OwnCall(types.SimpleNamespace(pool_of=lambda server: pool), server, HEAD, b"")
        if is_open:
            pool.opened(link)
            loop.run()
        found.result.cancel()  # as the end of a gather does
        found.cancel()
        if not is_open:
            pool.opened(link)

    asyncio.run(call_and_cancel())
    loop.run()

    sent = [kind for kind, stream in kinds(transport.sent[len(PREFACE) :]) if stream]
    assert sent == ([HEADERS, DATA, RESET] if is_open else [])
    assert not link.streams()


def test_a_server_that_leaves_the_list_keeps_no_connections(scripted, route, thread):
    grpc_server = ScriptedGrpc()
    grpc_server.respond = lambda data, context: response().SerializeToString()
    router = route([f"{scripted(good).name}:{grpc_server.port}"])
    calls = Calls(router.grpc_port)
    calls.infer()
    calls.close()
    (server,) = router.router.table.servers.values()
    assert server.links.links

    thread.loop.call_soon_threadsafe(router.router.servers._remove, server.address)

    until(lambda: not server.links.links and not router.router.grpc.pools)
    grpc_server.close()
