"""Connections of gRPC: one call or connection that fails leaves the others as they are."""

import types

import pytest
from core_router.grpc.native.blocks import field
from core_router.grpc.native.link import ClientLink, Flusher, Receiver, ServerLink
from core_router.grpc.pool import Attempt, LinkPool

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, RESET, SETTINGS = 1, 3, 4


def frame(kind, stream=0, payload=b"", flags=0):
    return (
        len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
    )


def call(stream, path=b"/x"):
    """Return the head of a call, which has ended its side."""
    # POST, http, authority, path
    head = b"\x83\x86\x01\x01a\x04" + bytes([len(path)]) + path
    return frame(HEADERS, stream, head, flags=5)


def kinds(data):
    """Return kind and stream of each frame."""
    found, at = [], 0
    while at < len(data):
        found.append((data[at + 3], int.from_bytes(data[at + 5 : at + 9], "big")))
        at += 9 + int.from_bytes(data[at : at + 3], "big")
    return found


class Loop:
    """An event loop whose callbacks run when a test says so."""

    def __init__(self):
        self._calls = []

    def call_soon(self, function):
        self._calls.append(function)

    def call_later(self, delay_s, function):
        pass

    def run(self):
        while self._calls:
            self._calls.pop(0)()


class Transport:
    """A transport without a socket.

    error   None, or what `write` raises
    """

    def __init__(self, error=None):
        self.sent, self.is_aborted, self.error = b"", False, error

    def write(self, data):
        if self.error is not None:
            raise self.error
        self.sent += data

    def close(self):
        self.is_aborted = True

    abort = close


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
